"""Agents: SAC and OBAC as one class around one pure update."""

from fog.agents.agent import Agent, build_agent
from fog.agents.rule import Rule
from fog.agents.state import State
from fog.agents.stats import UpdateStats
from fog.agents.update import TransitionLosses, transition_losses, update
from fog.agents.view import Networks
from fog.replay.batch import Batch

__all__ = [
    "Agent",
    "Batch",
    "Networks",
    "Rule",
    "State",
    "TransitionLosses",
    "UpdateStats",
    "build_agent",
    "transition_losses",
    "update",
]
