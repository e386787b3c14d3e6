"""The agent: acts, updates, grows, restarts, and can be saved and restored exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fog.agent.backend import backend_of
from fog.agent.compile import mark_static, update_function
from fog.agent.stats import UpdateStats
from fog.agent.view import Networks
from fog.algorithms.growth import ExpansionSchedule, expanded
from fog.algorithms.state import check_fits, flatten, unflatten
from fog.networks import depth_of
from fog.records.specs import spec_of
from fog.replay.batch import Batch
from fog.seeding import generator, integer_seed
from fog.settings.config import Config

_NOISE = "noise_generator"


def build_agent(
    config: Config,
    obs_dim: int,
    act_dim: int,
    device: torch.device | str = "cpu",
    compiled: bool | None = None,
) -> Agent:
    """A newborn agent; the config's seed decides the initial weights and the noise.

    `compiled` says whether to compile the update. None compiles only if the config says "on":
    "auto" is for the caller to decide, who knows how long the run is.
    """
    if compiled is None:
        compiled = config.runtime.compile == "on"
    return Agent(config, obs_dim, act_dim, torch.device(device), compiled)


class Agent:
    """An algorithm of `fog.algorithms` with critics that can grow and restart."""

    def __init__(
        self, config: Config, obs_dim: int, act_dim: int, device: torch.device, compiled: bool
    ) -> None:
        self.config = config
        self.spec = spec_of(config.flat(), obs_dim, act_dim)
        self.backend = backend_of(config, act_dim, device, compiled)
        self.hyper = self.backend.hyper
        self.schedule = ExpansionSchedule.from_config(config)
        self.device = device
        self.compiled = compiled and self.backend.family.COMPILES
        self.updates = 0
        """Updates since birth or the last reset."""
        self.total_updates = 0
        self.resets = 0
        self.networks = Networks(lambda: self._state, self.backend)
        self._noise = torch.Generator(device)
        self._noise.manual_seed(integer_seed(config.run.seed, "noise"))
        self._flags = [torch.tensor(flag, device=device) for flag in (False, True)]
        self._set_state(self._newborn())

    @property
    def depth(self) -> int:
        """Residual blocks of the critics."""
        return depth_of(self._state.critic)

    @property
    def dense_layers(self) -> int:
        """Dense layers of a critic: stem, two per block, head."""
        return self.spec.dense_layers(self.depth)

    @property
    def critic_lr(self) -> float:
        """Learning rate of all critics, initial x initial dense layers / current ones."""
        return self.spec.learning_rate(self.config.agent.critic_lr, self.depth)

    @property
    def bc_active(self) -> bool:
        """Whether the next update may clone behaviour: the OBAC wait is over."""
        return self.hyper.offline and self.updates >= self.config.agent.bc_wait_updates

    def act(
        self,
        obs: NDArray[np.floating],
        deterministic: bool | None = None,
        rng: np.random.Generator | None = None,
    ) -> NDArray[np.float32]:
        """Actions in [-1, 1] for one observation (obs_dim,) or several (n, obs_dim).

        `rng` is the source of the sampling noise. By default the agent explores if it is given, and
        acts as in evaluation otherwise.
        """
        array = np.asarray(obs, dtype=np.float32)
        if array.ndim not in (1, 2) or array.shape[-1] != self.spec.obs_dim:
            raise ValueError(
                f"obs has shape {array.shape}, expected ({self.spec.obs_dim},) with or without "
                "a leading dimension"
            )
        if rng is None and deterministic is False:
            raise ValueError("sampling an action needs rng; pass one, or drop deterministic=False")
        with torch.inference_mode():
            inputs = torch.from_numpy(array.reshape(-1, self.spec.obs_dim)).to(self.device)
            noise: Tensor | None = None
            if rng is not None and not deterministic:
                shape = (len(inputs), self.spec.act_dim)
                drawn = rng.standard_normal(shape, dtype=np.float32)
                noise = torch.from_numpy(drawn).to(self.device)
            decided = self.backend.family.decide(self._state, inputs, noise, self.hyper)
            actions: NDArray[np.float32] = decided.cpu().numpy()
        return actions[0] if array.ndim == 1 else actions

    def observe(self, obs: NDArray[np.floating]) -> None:
        """Take in an observation that training is about to act on, for running statistics."""
        seen = torch.as_tensor(obs, dtype=torch.float32, device=self.device)
        self.backend.family.observe_(self._state, seen)

    def update(self, batches: Batch) -> UpdateStats:
        """One update per batch; k batches in one call are exactly k calls with one each.

        The tensors of `batches` have leading shape (k, B). At most `updates_until_change()` batches
        may be given: an expansion that falls due before the last of them comes first.
        """
        count, batch_size = batches.reward.shape
        room = self.updates_until_change()
        if room is not None and count > room:
            raise ValueError(f"{count} batches given, but an expansion is due after {room}")
        step = update_function(
            self.backend, self.spec, self.depth, batches, self.device, self.compiled
        )
        metrics: list[Tensor] = []
        errors: list[Tensor] = []
        shape = (self.backend.family.NOISES, batch_size, self.spec.act_dim)
        for columns in zip(*(tensor.unbind(0) for tensor in batches), strict=True):
            noise = torch.randn(shape, generator=self._noise, device=self.device)
            flag = self._flags[self.bc_active]
            vector, td_error = step(self._state, Batch(*columns), noise, flag, self.hyper)
            metrics.append(vector)
            errors.append(td_error)
            self.updates += 1
            self.total_updates += 1
        return UpdateStats(self.backend.family.METRICS, metrics, errors)

    def expansion_due(self) -> bool:
        """Whether the critics must grow before the next update."""
        return self.depth < self.schedule.depth_at(self.updates)

    def updates_until_change(self) -> int | None:
        """Updates that may be made before the next expansion: 0 if due now, None if none comes."""
        return 0 if self.expansion_due() else self.schedule.updates_until(self.updates)

    def expand(self) -> None:
        """Append a fresh block to every critic, to its target and to V.

        Old parameters stay bit for bit. All critic-side optimisers start anew at the decayed
        learning rate; actor and temperature keep theirs.
        """
        if self.depth >= self.spec.maximal_depth:
            raise ValueError(f"critics are at their maximal depth {self.spec.maximal_depth}")
        rng = generator(self.config.run.seed, "init", self.resets, self.depth)
        init = self.backend.family.init_critic
        self._set_state(expanded(self._state, rng, self.spec, self.config.agent, init))

    def reset(self) -> None:
        """Start everything learnable anew from a fresh seed of the init stream.

        Statistics of the data (`KEPT` of the algorithm) stay, as the replay does. Depth, learning
        rates and the counter of updates go back; the noise stream goes on.
        """
        self.resets += 1
        self.updates = 0
        kept = {name: getattr(self._state, name) for name in self.backend.family.KEPT}
        self._set_state(self._newborn()._replace(**kept))

    def is_finite(self) -> bool:
        """Whether every parameter and optimiser moment is finite; waits for the device."""
        found = [torch.isfinite(tensor).all() for _, tensor in flatten(self._state)]
        return bool(torch.stack([finite.to(self.device) for finite in found]).all())

    def parameter_counts(self, depth: int | None = None) -> dict[str, int]:
        """Parameters by network and in total, now or at another depth."""
        return self.spec.parameters(self.depth if depth is None else depth)

    def state_dict(self) -> dict[str, Tensor]:
        """Everything learnable and the noise stream as CPU copies; see also `counters`."""
        tensors = {name: tensor.detach().clone().cpu() for name, tensor in flatten(self._state)}
        return tensors | {_NOISE: self._noise.get_state()}

    def counters(self) -> dict[str, int]:
        """The plain numbers that belong to `state_dict`."""
        return {
            "updates": self.updates,
            "total_updates": self.total_updates,
            "resets": self.resets,
        }

    def load_state_dict(self, tensors: Mapping[str, Tensor], counters: Mapping[str, int]) -> None:
        """Restore exactly what `state_dict` and `counters` returned, depth included.

        Only the noise of an agent from another kind of device, CPU or CUDA, is drawn anew.
        """
        parameters = {name: tensor for name, tensor in tensors.items() if name != _NOISE}
        check_fits(parameters, self.spec)
        # Counters stay on the host; what is not there at birth is a block.
        places = {name: tensor.device for name, tensor in flatten(self._state)}
        moved = {
            name: tensor.to(places.get(name, self.device), copy=True)
            for name, tensor in parameters.items()
        }
        self._set_state(unflatten(moved, type(self._state)))
        self.updates = counters["updates"]
        self.total_updates = counters["total_updates"]
        self.resets = counters["resets"]
        self._restore_noise(tensors[_NOISE].cpu())

    def _restore_noise(self, state: Tensor) -> None:
        if state.shape == self._noise.get_state().shape:
            self._noise.set_state(state)
        else:
            # The stream of another kind of device has no continuation here, so a new one begins.
            seed = integer_seed(self.config.run.seed, "noise", self.total_updates)
            self._noise.manual_seed(seed)

    def _newborn(self) -> Any:
        rng = generator(self.config.run.seed, "init", self.resets)
        return self.backend.family.newborn(rng, self.spec, self.config.agent, self.device)

    def _set_state(self, state: Any) -> None:
        if self.compiled and self.device.type == "cuda":
            mark_static(state)
        self._state = state
