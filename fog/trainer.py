"""The training loop: one environment, one replay, one agent, and observers that cannot steer.

Within one environment step: add the transition, make the updates that are due (expanding the
critics between two of them), evaluate, let probes measure a window that ends, expand after the
last update, reset, then checkpoint. The paper's resets fall on the ends of its 100k-step windows;
measured after a reset or an expansion, a heatmap column would show newborn weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import flatdim

from fog import checkpoint, envs, probing, seeding, tasks
from fog.agents import build_agent
from fog.config import Config
from fog.device import compiles, device_of, prepare
from fog.errors import UserError
from fog.evaluation import Evaluator
from fog.events import Change, ChangeKind, EnvStep, Update
from fog.interrupts import StopRequest
from fog.ledger import Ledger
from fog.progress import Reporter
from fog.recorder import MeanMetrics, Recorder
from fog.replay import Replay, ReplayError, make_sampler
from fog.rundir import RunDirectory, Status
from fog.schedule import UpdateSchedule
from fog.subject import observe


class DivergedError(Exception):
    """A non-finite value appeared. Something to study, so it ends the run and not the program."""


class Trainer:
    """One run in memory. `start` or `restore` it, then `loop`."""

    def __init__(self, config: Config, directory: RunDirectory, report: Reporter) -> None:
        self.config = config
        self.directory = directory
        self.report = report
        run, replay = config.run, config.replay
        device = device_of(config)
        prepare(config.runtime.threads)
        task = tasks.get(run.task)
        self.env = envs.make(task, run.seed)
        obs_dim, act_dim = flatdim(self.env.observation_space), flatdim(self.env.action_space)
        self.agent = build_agent(config, obs_dim, act_dim, device, compiles(config, device))
        sampler = make_sampler(
            replay.sampler,
            capacity=replay.capacity,
            rng=seeding.generator(run.seed, "replay"),
            epsilon=replay.epsilon,
            tau=replay.tau,
            alpha=replay.per_alpha,
            beta=replay.per_beta,
            total_steps=run.steps,
            quota=config.agent.replay_ratio * config.agent.batch_size,
        )
        self.replay = Replay(
            obs_dim,
            act_dim,
            replay.capacity,
            sampler=sampler,
            device=device,
            storage=replay.storage,
            directory=directory.path / "replay" if replay.storage == "memmap" else None,
        )
        self.explore = seeding.generator(run.seed, "explore")
        self.schedule = UpdateSchedule(config.agent.replay_ratio, run.warmup_steps)
        self.resets = frozenset(at for at in config.lifecycle.reset_steps if at < run.steps)
        self.evaluator = Evaluator(task, run.seed, run.eval_episodes)
        self.progress = probing.Progress()
        self.ledger = Ledger(directory.path)
        self.probes = observe(
            config, self.progress, self.agent, self.replay, directory.probes_path, self.ledger
        )
        self.metrics = MeanMetrics()
        self.episode = 0
        self.evaluations = 0
        self.episode_return = 0.0
        self.last_return: float | None = None
        self.last_eval: float | None = None
        self._clock = (time.perf_counter(), 0, 0)
        self.recorder: Recorder
        self.obs: np.ndarray[Any, np.dtype[np.float32]]

    # Starting and going on

    def start(self) -> None:
        """Begin at step 0."""
        self.recorder = Recorder(self.directory, self.config, 0, self.ledger)
        self.obs, _ = self.env.reset(options={"episode": 0})
        self.replay.begin_episode(self.obs)

    def save(self) -> None:
        """Write a checkpoint of everything, at the end of an environment step.

        Raises:
            DivergedError: the agent is not finite; the checkpoint before stays the last good one.
        """
        if not self.agent.is_finite():
            raise DivergedError("a parameter or optimiser moment is no longer finite")

        def fill(home: Path) -> None:
            checkpoint.save_tensors(home / checkpoint.AGENT, self.agent.state_dict())
            self.replay.save(home / "replay")
            self.probes.save(home / "probes")
            state = {
                "env_step": self.progress.env_step,
                "agent": self.agent.counters(),
                "episode": self.episode,
                "evaluations": self.evaluations,
                "episode_return": self.episode_return,
                "last_return": self.last_return,
                "last_eval": self.last_eval,
                "metric_sums": self.metrics.sums,
                "metric_updates": self.metrics.updates,
                "explore": seeding.get_state(self.explore),
                "tables": self.ledger.sync(),
            }
            checkpoint.save_json(home / checkpoint.STATE, state)

        checkpoint.write(self.directory.checkpoint_path, self.progress.env_step, fill)
        self._event("checkpoint")

    def restore(self, home: Path) -> None:
        """Go on from a checkpoint, and step the environment back to where it was."""
        state = checkpoint.load_json(home / checkpoint.STATE)
        tensors = checkpoint.load_tensors(home / checkpoint.AGENT)
        self.agent.load_state_dict(tensors, state["agent"])
        self.replay.load(home / "replay")
        self.progress.env_step = state["env_step"]
        self.progress.updates = self.agent.total_updates
        self.probes.load(home / "probes")
        self.episode = state["episode"]
        self.evaluations = state["evaluations"]
        self.episode_return = state["episode_return"]
        self.last_return = state["last_return"]
        self.last_eval = state["last_eval"]
        self.metrics.sums = state["metric_sums"]
        self.metrics.updates = state["metric_updates"]
        seeding.set_state(self.explore, state["explore"])
        self.ledger.restore(state)
        self.recorder = Recorder(self.directory, self.config, state["env_step"], self.ledger)
        self.obs, _ = self.env.reset(options={"episode": self.episode})
        for action in self.replay.partial_episode_actions():
            self.obs, *_ = self.env.step(action)
        remembered = self.replay.current_obs
        if remembered is None or not np.array_equal(self.obs, remembered):
            raise UserError(
                f"cannot resume {self.directory.path}: {self.config.run.task} did not repeat its "
                "episode exactly; were the simulator versions changed?"
            )
        self._event("resume")

    # The loop

    def loop(self, stop: StopRequest) -> Status:
        """Train until the end, or until asked to stop."""
        steps, every = self.config.run.steps, self.config.runtime.checkpoint_every
        if self.progress.env_step == steps:
            return "finished"  # killed after its last save: the probes have had their end
        self.probes.start()
        self._clock = (time.perf_counter(), self.progress.env_step, self.agent.total_updates)
        while self.progress.env_step < steps:
            self._step()
            now = self.progress.env_step
            if stop.requested and now < steps:
                self.save()
                return "interrupted"
            if now % every == 0 and now < steps:
                self.save()
        self.probes.end()
        self.save()
        return "finished"

    def _step(self) -> None:
        run = self.config.run
        self._interact()
        now = self.progress.env_step
        self._update(self.schedule.total(now) - self.agent.total_updates)
        if now % run.eval_every == 0 or now == run.steps:
            self._evaluate()
        if now % run.window_steps == 0 or now == run.steps:
            self.probes.window()
        self._expand_if_due()
        if now in self.resets:
            self._change("reset", self.agent.reset)
        if now % run.log_every == 0 or now == run.steps:
            self._log()

    def _interact(self) -> None:
        if self.progress.env_step < self.config.run.warmup_steps:
            size = self.env.action_space.shape
            action = self.explore.uniform(-1.0, 1.0, size).astype(np.float32)
        else:
            action = self.agent.act(self.obs, rng=self.explore)
        self.obs, reward, terminated, truncated, _ = self.env.step(action)
        try:
            added = self.replay.add(action, float(reward), self.obs, terminated, truncated)
        except ReplayError as error:
            raise DivergedError(str(error)) from None
        self.progress.env_step += 1
        self.episode_return += float(reward)
        self.probes.env_step(EnvStep(added, float(reward), terminated, truncated))
        if terminated or truncated:
            self.last_return, self.episode_return = self.episode_return, 0.0
            self.episode += 1
            self.obs, _ = self.env.reset(options={"episode": self.episode})
            self.replay.begin_episode(self.obs)

    def _update(self, due: int) -> None:
        batch_size = self.config.agent.batch_size
        while due > 0:
            self._expand_if_due()
            # With feedback, each draw must see the priorities that the update before it set.
            several = 1 if self.replay.sampler.feedback else due
            room = self.agent.updates_until_change()
            count = several if room is None else min(several, room)
            batch, ids = self.replay.sample(batch_size, count)
            stats = self.agent.update(batch)
            if not stats.finite:
                raise DivergedError("a loss, target or parameter is no longer finite")
            self.replay.update_priorities(ids, stats.td_error)
            self.progress.updates = self.agent.total_updates
            self.metrics.add(stats.metrics, count)
            self.probes.update(Update(ids, stats.metrics))
            due -= count

    def _expand_if_due(self) -> None:
        if self.agent.expansion_due():
            self._change("expansion", self.agent.expand)

    def _change(self, kind: ChangeKind, apply: Callable[[], None]) -> None:
        self.probes.change(Change(kind, "before"))
        apply()
        self.probes.change(Change(kind, "after"))
        self._event(kind)

    def _evaluate(self) -> None:
        record = self.probes.wants("on_evaluation")
        scores, episodes = self.evaluator(self.agent, self.evaluations, record=record)
        first = self.evaluations * self.config.run.eval_episodes
        self.recorder.evaluation(self.progress.env_step, first, scores)
        self.evaluations += 1
        self.last_eval = float(np.mean([score.env_return for score in scores]))
        self.probes.evaluation(episodes)

    # Telling

    def _event(self, event: str, detail: str = "") -> None:
        self.recorder.event(
            self.progress.env_step,
            event,
            updates=self.agent.total_updates,
            depth=self.agent.depth,
            dense_layers=self.agent.dense_layers,
            critic_lr=self.agent.critic_lr,
            detail=detail,
        )

    def _log(self) -> None:
        now, updates = self.progress.env_step, self.agent.total_updates
        began, first_step, first_update = self._clock
        seconds = max(time.perf_counter() - began, 1e-9)
        rates = (now - first_step) / seconds, (updates - first_update) / seconds
        self._clock = (time.perf_counter(), now, updates)
        self.report.advance(
            now,
            {
                "updates/s": f"{rates[1]:.0f}",
                "return": "-" if self.last_eval is None else f"{self.last_eval:.1f}",
                "depth": str(self.agent.depth),
            },
        )
        if self.metrics.updates == 0:
            return
        self.recorder.train(
            now,
            {
                "updates": updates,
                "episodes": self.episode,
                "train_return": self.last_return,
                "depth": self.agent.depth,
                "critic_lr": self.agent.critic_lr,
                **self.metrics.take(),
                "steps_per_second": rates[0],
                "updates_per_second": rates[1],
                **{f"probe_seconds.{name}": at for name, at in self.probes.seconds.items()},
            },
        )

    def diverged(self, reason: str) -> None:
        """Record where and why the run diverged; the last checkpoint is the last finite one."""
        self._event("diverged", reason)

    def close(self) -> None:
        """Close environments and tables."""
        self.env.close()
        self.evaluator.close()
        if hasattr(self, "recorder"):
            self.recorder.close()
