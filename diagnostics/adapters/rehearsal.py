"""Tries probes on a few transitions before training relies on them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from fog.errors import UserError
from fog.events import Facts, Memory, ObservedAgent, Probe, Transitions, Update
from fog.probing.dispatch import Counters, ProbeError, Probes

IntArray = NDArray[np.int64]

ROWS = 64
"""Transitions that a probe is tried on."""


class FewRows:
    """The newest transitions of a replay, as a replay."""

    def __init__(self, memory: Memory, rows: int = ROWS) -> None:
        self.added = memory.added
        self.size = min(rows, memory.size)
        self._memory = memory

    @property
    def counts(self) -> NDArray[np.int32]:
        """Draws of every transition ever added."""
        return self._memory.counts

    def take(self, ids: IntArray) -> Transitions:
        """Chosen transitions."""
        return self._memory.take(ids)

    def chunks(self, size: int) -> Iterator[tuple[IntArray, Transitions]]:
        """All of them at once."""
        ids = np.arange(self.added - self.size, self.added)
        yield ids, self.take(ids)


def check_agent(agent: ObservedAgent, memory: Memory) -> dict[str, str]:
    """Refuse critics, targets and policies that cannot be evaluated on what is stored.

    Returns:
        What such an agent does not have, by column, and why.

    Raises:
        UserError: they fail, or return another shape than one value for each transition.
    """
    few = FewRows(memory)
    for _, batch in few.chunks(0):
        noise = torch.zeros(len(batch.reward), agent.act_dim, device=agent.device)
        try:
            agent.losses(batch, noise)
            if "actor" in agent.networks:
                agent.action(batch.obs)
                if agent.policy(batch.obs) is None:
                    return {"offpolicy.log_prob": "a deterministic policy has no density"}
        except UserError:
            raise
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
            shapes = f"obs {tuple(batch.obs.shape)}, action {tuple(batch.action.shape)}"
            raise UserError(
                f"the agent's loss cannot be computed on stored transitions ({shapes}): "
                f"{one_line(error)}"
            ) from error
    return {}


def obstacle(
    make: Callable[[], Probe],
    facts: Facts,
    progress: Counters,
    agent: ObservedAgent,
    memory: Memory,
    call: Callable[[Probes], None],
) -> str | None:
    """Why a probe cannot measure this agent, found by trying; None if it can.

    Args:
        make: a new probe of the kind.
        facts: of the run.
        progress: counters of the run.
        agent: the agent.
        memory: a few transitions.
        call: the hooks to try.
    """
    with tempfile.TemporaryDirectory() as folder:
        trial = Probes([make()], facts, progress, agent, memory, Path(folder))
        try:
            trial.start()
            call(trial)
        except ProbeError as error:
            cause = error.__cause__
            return one_line(cause) if cause is not None else str(error)
        except UserError as error:
            return str(error).partition(": ")[2]
    return None


def measure(trial: Probes) -> None:
    """The hooks of training: an update, and the end of a window."""
    trial.update(Update(np.zeros((1, 0), np.int64), {}))
    trial.window()


def one_line(error: BaseException) -> str:
    """An error's message in one line; its type if it is not addressed to the user."""
    text = " ".join(str(error).split())
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"
