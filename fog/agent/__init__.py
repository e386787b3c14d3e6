"""Agents: SAC and OBAC as one class around one pure update."""

from fog.agent.agent import Agent, build_agent
from fog.agent.stats import UpdateStats
from fog.agent.view import Networks
from fog.algorithms.hyperparameters import Rule
from fog.algorithms.state import State
from fog.fast.update import TransitionLosses, transition_losses, update
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
