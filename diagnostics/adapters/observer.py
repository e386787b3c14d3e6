"""Calls probes for an agent that our trainer does not train, and writes its run directory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from diagnostics.adapters import rehearsal
from diagnostics.adapters.run_record import RunRecord
from fog.errors import UserError
from fog.events import (
    Change,
    ChangeKind,
    EnvStep,
    Episode,
    Facts,
    Memory,
    ObservedAgent,
    Phase,
    Probe,
    Update,
)
from fog.probing.dispatch import Counters, Probes
from fog.probing.registry import chosen, load

_NO_EPISODES = "no evaluation episodes were given"


class Observer:
    """Attaches probes to an agent and its replay, and tells them what happens.

        observer = Observer(agent, memory, facts, "runs/Ant-v5/mine/seed0", ["critic_loss"])
        observer.start()
        ...
        observer.advance(env_step, updates, drawn_ids)   # as often as suits the training loop

    Everything is written like one of our own runs, so every command reads it. A probe that is
    named must work. Those that `all` stands for are tried first, on a few transitions; one that
    cannot measure this agent is left out, and the manifest says why under `unmeasured`.
    """

    def __init__(
        self,
        agent: ObservedAgent,
        memory: Memory,
        facts: Facts,
        directory: str | Path,
        probes: Sequence[str | Probe] = ("all",),
        *,
        task: str | None = None,
        variant: str | None = None,
        library: str | None = None,
    ) -> None:
        """Attach.

        Args:
            agent: the agent.
            memory: its replay.
            facts: what probes must know of the run.
            directory: the run directory, best named `<task>/<variant>/seed<k>`.
            probes: names as in `fog train --probes`, or probes of one's own.
            task: the environment's name; None takes it from the directory.
            variant: the agent's name; None takes it from the directory.
            library: what trains the agent, for the manifest.
        """
        names = [probe for probe in probes if isinstance(probe, str)]
        self.progress = Counters()
        self.unmeasured = dict(getattr(agent, "unmeasured", {}))
        self._agent = agent
        self._memory = memory
        self._facts = facts
        self._record = RunRecord(Path(directory), facts, task, variant, library)
        self._specs = {spec.partition(":")[0]: spec for spec in chosen(names)}
        self._named = {spec.partition(":")[0] for spec in names}
        self._probes = {name: load([spec])[0] for name, spec in self._specs.items()}
        self._probes |= {probe.name: probe for probe in probes if isinstance(probe, Probe)}
        self._calls = {
            name: Probes(
                [probe],
                facts,
                self.progress,
                agent,
                memory,
                Path(directory) / "probes",
                self._record.ledger,
            )
            for name, probe in self._probes.items()
        }
        self._window = 0
        self._measured = -1
        self._tried = self._tried_episodes = False

    def start(self) -> None:
        """Training is about to start.

        Raises:
            UserError: a named probe lacks something, or the directory holds a run already.
        """
        for name in list(self._calls):
            try:
                self._calls[name].start()
            except UserError as error:
                self._leave_out(name, str(error).partition(": ")[2], error)
        self._record.open(list(self._calls), self.unmeasured)

    def check(self) -> None:
        """Evaluate the agent on a few stored transitions, before anything is written.

        Raises:
            UserError: it cannot be evaluated, or returns another shape than it must.
        """
        self.unmeasured |= rehearsal.check_agent(self._agent, self._memory)

    def probe(self, name: str) -> Probe | None:
        """The attached probe of that name; None if it is not attached."""
        return self._probes.get(name) if name in self._calls else None

    def leave_out(self, name: str, reason: str) -> None:
        """Detach a probe that cannot say anything here, and record why."""
        if name in self._calls and name not in self._named:
            del self._calls[name]
        self.unmeasured[name] = reason

    def added(self, event: EnvStep) -> None:
        """A transition was added, the one of environment step `event.id + 1`."""
        self.progress.env_step = event.id + 1
        for probes in self._calls.values():
            probes.env_step(event)

    def advance(self, env_step: int, updates: int, ids: NDArray[np.int64] | None = None) -> None:
        """Training has come to `env_step` and `updates`.

        Args:
            env_step: environment steps so far.
            updates: gradient updates so far.
            ids: transitions drawn since the last call, one row for each update; None if unknown.

        Raises:
            UserError: at the first call, the agent cannot be evaluated on what is stored.
        """
        made = updates - self.progress.updates
        self.progress.env_step, self.progress.updates = env_step, updates
        window = env_step // self._facts.window_steps
        measures = window > self._window and self._memory.size > 0
        if not self._tried and self._memory.size and (made > 0 or measures):
            self._try_out()
        if made > 0:
            drawn = np.zeros((made, 0), np.int64) if ids is None else ids
            for probes in self._calls.values():
                probes.update(Update(drawn, {}))
        if measures:
            self._window = window
            self._measure()

    def change(self, kind: ChangeKind, phase: Phase) -> None:
        """The networks are about to be ("before"), or have just been ("after"), reset or expanded.

        Probes compare the two sides, so each call with "before" needs one with "after".

        Args:
            kind: "reset" or "expansion".
            phase: "before" or "after".
        """
        for probes in self._calls.values():
            probes.change(Change(kind, phase))
        if phase == "after":
            self._record.event(self.progress.env_step, self.progress.updates, kind)

    def evaluated(self, episodes: list[Episode], returns: Sequence[float] | None = None) -> None:
        """Evaluation episodes were played.

        Args:
            episodes: as the critic sees them.
            returns: undiscounted returns, if rewards are not the environment's own.
        """
        if not self._tried_episodes:
            self._tried_episodes = True
            self._try(self._memory, lambda trial: trial.evaluation(episodes))
        for probes in self._calls.values():
            probes.evaluation(episodes)
        sums = [float(episode.rewards.sum()) for episode in episodes]
        lengths = [len(episode.rewards) for episode in episodes]
        self._record.evaluation(self.progress.env_step, returns or sums, lengths)

    def end(self) -> None:
        """Training is over; a last window that is not full is measured too."""
        if self.progress.env_step > self._measured and self._memory.size:
            if not self._tried:
                self._try_out()
            self._measure()
        for probes in self._calls.values():
            probes.end()
        if not self._tried_episodes:
            for name, probes in self._calls.items():
                if probes.wants("on_evaluation"):
                    self.unmeasured.setdefault(name, _NO_EPISODES)
        self._record.close(self.progress.env_step, self.unmeasured)

    def _measure(self) -> None:
        self._measured = self.progress.env_step
        for probes in self._calls.values():
            probes.window()
        seconds = {name: probes.seconds[name] for name, probes in self._calls.items()}
        self._record.train(self.progress.env_step, self.progress.updates, seconds)

    def _try_out(self) -> None:
        self._tried = True
        self.check()
        self._try(rehearsal.FewRows(self._memory), rehearsal.measure)

    def _try(self, memory: Memory, call: Callable[[Probes], None]) -> None:
        """Leave out what fails, unless it was named: then the run itself says so."""
        before = dict(self.unmeasured)
        for name in [name for name in self._calls if name not in self._named]:
            if name not in self._specs:
                continue
            progress = copy.copy(self.progress)
            reason = rehearsal.obstacle(
                lambda spec=self._specs[name]: load([spec])[0],  # type: ignore[misc]
                self._facts,
                progress,
                self._agent,
                memory,
                call,
            )
            if reason is not None:
                self.leave_out(name, reason)
        if self.unmeasured != before:
            self._record.tell(list(self._calls), self.unmeasured)

    def _leave_out(self, name: str, reason: str, error: UserError) -> None:
        if name in self._named or name not in self._specs:
            raise error
        self.leave_out(name, reason)
