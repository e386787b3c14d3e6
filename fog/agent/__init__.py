"""The agent: one class around the update of an algorithm, compiled or not, plain or fast."""

from fog.agent.agent import Agent, build_agent
from fog.agent.stats import UpdateStats
from fog.agent.view import Networks
from fog.replay.batch import Batch

__all__ = ["Agent", "Batch", "Networks", "UpdateStats", "build_agent"]
