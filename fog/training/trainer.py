"""The training loop: one environment, one replay, one agent, and observers that cannot steer.

Within one environment step: add the transition, make the updates that are due (`learner`; critics
may expand between two of them), evaluate, let probes measure a window that ends, expand after the
last update, reset, then checkpoint. The paper's resets fall on the ends of its 100k-step windows;
measured after a reset or an expansion, a heatmap column would show untrained weights.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import flatdim

from fog import envs, seeding
from fog.agent import build_agent
from fog.errors import UserError
from fog.events import EnvStep
from fog.probing import dispatch
from fog.probing.observed import observe
from fog.records import checkpoint
from fog.records.ledger import Ledger
from fog.records.run_directory import RunDirectory
from fog.records.statuses import Status
from fog.replay import Replay, ReplayError, make_sampler
from fog.settings.config import Config
from fog.system.interrupts import StopRequest
from fog.training.console import Reporter
from fog.training.device import compiles, device_of, prepare
from fog.training.evaluation import Evaluator
from fog.training.learner import DivergedError, Learner
from fog.training.recorder import Recorder


class Trainer:
    """One run in memory. `start` or `restore` it, then `loop`."""

    def __init__(self, config: Config, directory: RunDirectory, report: Reporter) -> None:
        self.config = config
        self.directory = directory
        self.report = report
        run, replay = config.run, config.replay
        device = device_of(config)
        prepare(config.runtime.threads)
        task = run.known_task()
        self.env = envs.make(task, run.seed)
        obs_dim, act_dim = flatdim(self.env.observation_space), flatdim(self.env.action_space)
        self.agent = build_agent(config, obs_dim, act_dim, device, compiles(config, device))
        batches = config.agent.replay_ratio if replay.cuer_quota == "step" else 1.0
        sampler = make_sampler(
            replay.sampler,
            capacity=replay.capacity,
            rng=seeding.generator(run.seed, "replay"),
            epsilon=replay.epsilon,
            tau=replay.tau,
            alpha=replay.per_alpha,
            beta=replay.per_beta,
            total_steps=run.steps,
            quota=batches * config.agent.batch_size,
            horizon=replay.swd_horizon,
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
        self.resets = frozenset(at for at in config.lifecycle.reset_steps if at < run.steps)
        self.evaluator = Evaluator(task, run.seed, run.eval_episodes)
        self.progress = dispatch.Counters()
        self.ledger = Ledger(directory.path)
        self.probes = observe(
            config, self.progress, self.agent, self.replay, directory.probes_path, self.ledger
        )
        self.learner = Learner(
            config, self.agent, self.replay, self.probes, self.progress, self._event, report
        )
        self.stop = StopRequest()
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
        """Write a checkpoint of everything, between environment steps or between updates of one.

        An agent that is not finite is not saved: the checkpoint before stays the last good one.
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
                "metric_sums": self.learner.metrics.sums,
                "metric_updates": self.learner.metrics.updates,
                "explore": seeding.get_state(self.explore),
                "tables": self.ledger.sync(),
            }
            checkpoint.save_json(home / checkpoint.STATE, state)

        checkpoint.write(self.directory.checkpoint_path, self.progress.env_step, fill)
        self._event("checkpoint")

    def restore(self, home: Path) -> None:
        """Continue from a checkpoint, and replay the environment to where it was."""
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
        self.learner.metrics.sums = state["metric_sums"]
        self.learner.metrics.updates = state["metric_updates"]
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
        self.stop = stop
        if self._is_over():
            return "finished"  # killed after its last save: the probes have had their end
        self.probes.start()
        self._clock = (time.perf_counter(), self.progress.env_step, self.agent.total_updates)
        while not self._is_over():
            self._step()
            now = self.progress.env_step
            if stop.requested and not self._is_over():
                self.save()
                return "interrupted"
            if now % every == 0 and now < steps:
                self.save()
        self.probes.end()
        self.save()
        return "finished"

    def _is_over(self) -> bool:
        return self.progress.env_step == self.config.run.steps and not self.learner.due()

    def _step(self) -> None:
        """One environment step, or the rest of one that was stopped between its updates."""
        run = self.config.run
        if not self.learner.due():
            self._interact()
        now = self.progress.env_step
        self.learner.update(self.stop)
        if self.learner.due():
            return
        if now % run.eval_every == 0 or now == run.steps:
            self._evaluate()
        if now % run.window_steps == 0 or now == run.steps:
            self.probes.window()
        self.learner.expand_if_due()
        if now in self.resets:
            self.learner.reset()
        if now % run.log_every == 0 or now == run.steps or self.learner.schedule.primes(now):
            self._log()

    def _interact(self) -> None:
        self.agent.observe(self.obs)
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
        if self.learner.metrics.updates == 0:
            return
        self.recorder.train(
            now,
            {
                "updates": updates,
                "episodes": self.episode,
                "train_return": self.last_return,
                "depth": self.agent.depth,
                "critic_lr": self.agent.critic_lr,
                **self.learner.metrics.take(),
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
