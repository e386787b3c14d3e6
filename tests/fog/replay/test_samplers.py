"""Every sampler against its exact law, by chi-square, and a wrong sampler that must fail it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from fog.errors import ConfigError
from fog.replay import (
    SAMPLERS,
    DecayLaw,
    DecaySampler,
    LinearLaw,
    Replay,
    ReplayError,
    make_sampler,
)
from fog.seeding import generator

P_MIN = 1e-3


def chi_square(ids: np.ndarray, law: np.ndarray, oldest: int) -> float:
    """p-value of the draws under `law`; neighbours are pooled until each cell expects 10."""
    assert ids.min() >= oldest
    assert ids.max() < oldest + len(law)
    observed = np.bincount(ids.ravel() - oldest, minlength=len(law)).astype(float)
    expected = law * ids.size
    assert (observed[law == 0] == 0).all()
    observed, expected = observed[law > 0], expected[law > 0]
    cumulative = np.cumsum(expected)
    starts = [0]
    while True:
        reached = cumulative[starts[-1] - 1] if starts[-1] else 0.0
        start = int(np.searchsorted(cumulative, reached + 10.0)) + 1
        if start >= len(cumulative) or cumulative[-1] - cumulative[start - 1] < 10.0:
            break
        starts.append(start)
    if len(starts) == 1:
        return 1.0
    observed, expected = np.add.reduceat(observed, starts), np.add.reduceat(expected, starts)
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def exact_decay_law(size: int, epsilon: float, tau: float) -> np.ndarray:
    """The paper's definition, written out: max(tau, (1-eps)^(t-i)) over its sum."""
    weights = np.array([max(tau, (1.0 - epsilon) ** (size - 1 - i)) for i in range(size)])
    return weights / weights.sum()


# (capacity, added): not full, exactly full, wrapped once, wrapped many times.
FILLS = [(1000, 1), (1000, 2), (1000, 300), (1000, 1000), (1000, 1001), (1000, 1700), (777, 23456)]


@pytest.mark.parametrize(("capacity", "added"), FILLS)
@pytest.mark.parametrize("epsilon", [0.0, 1e-7, 1e-4, 1e-3, 0.02, 0.7, 1.0])
@pytest.mark.parametrize("tau", [0.0, 1e-3, 0.1, 1.0])
def test_decay_follows_the_paper(capacity, added, epsilon, tau):
    sampler = make_sampler(
        "decay", capacity=capacity, rng=generator(1, "replay"), epsilon=epsilon, tau=tau
    )
    oldest = added - min(added, capacity)
    law = exact_decay_law(added - oldest, epsilon, tau)
    assert np.allclose(sampler.probabilities(oldest, added), law, rtol=1e-9, atol=1e-300)
    ids, weights = sampler.draw(8, 2500, oldest, added)
    assert weights is None
    assert chi_square(ids, law, oldest) > P_MIN


@pytest.mark.parametrize(("capacity", "added"), FILLS)
@pytest.mark.parametrize("horizon", [1, 7, 400, 100_000])
@pytest.mark.parametrize("floor", [0.0, 1e-3, 0.1, 1.0])
def test_sample_weight_decay_follows_its_law(capacity, added, horizon, floor):
    """max(floor, 1 - age/T) over its sum, written out."""
    sampler = make_sampler(
        "swd", capacity=capacity, rng=generator(1, "replay"), horizon=horizon, tau=floor
    )
    oldest = added - min(added, capacity)
    ages = range(added - oldest - 1, -1, -1)
    weights = np.array([max(floor, 1.0 - age / horizon) for age in ages])
    law = weights / weights.sum()
    assert np.allclose(sampler.probabilities(oldest, added), law, rtol=1e-12)
    ids, importance = sampler.draw(8, 2500, oldest, added)
    assert importance is None
    assert chi_square(ids, law, oldest) > P_MIN


@pytest.mark.parametrize("horizon", [1, 50, 30_000, 10**9])
@pytest.mark.parametrize("floor", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("size", [1, 2, 1000, 50_000])
def test_sample_weight_decay_inverse_is_the_inverse(horizon, floor, size):
    """Just inside either end of age a's stretch of [0, 1) the age must be a: no draw needed."""
    law = LinearLaw(horizon, floor)
    weights = law.weights(np.arange(size))
    edges = np.concatenate([[0.0], np.cumsum(weights)])
    ages = np.unique(np.linspace(0, size - 1, 500).astype(int))
    ages = ages[weights[ages] / edges[-1] > 1e-8]
    for inside in (1e-4, 0.5, 1 - 1e-4):
        uniforms = (edges[ages] + inside * weights[ages]) / edges[-1]
        assert np.array_equal(law.ages(uniforms, size), ages)
    _, linear, flat = law.masses(size)
    assert linear + flat == pytest.approx(weights.sum(), rel=1e-9)


@pytest.mark.parametrize(("horizon", "floor"), [(0, 0.1), (10, -0.1), (10, 1.1)])
def test_sample_weight_decay_refuses_settings_without_a_law(horizon, floor):
    with pytest.raises(ConfigError, match="swd"):
        LinearLaw(horizon, floor)


@pytest.mark.parametrize(("epsilon", "tau"), [(1e-7, 0.0), (1e-7, 0.95), (1e-5, 0.1), (1e-4, 0.01)])
def test_decay_at_a_million(epsilon, tau):
    size = 1_000_000
    sampler = DecaySampler(generator(2, "replay"), epsilon, tau)
    ids, _ = sampler.draw(100, 4000, 500, 500 + size)
    ages = np.arange(size - 1, -1, -1)
    law = np.maximum(tau, np.exp(ages * np.log1p(-epsilon)))
    law /= law.sum()
    assert chi_square(ids, law, 500) > P_MIN


@pytest.mark.parametrize("epsilon", [1e-7, 1e-5, 1e-3, 0.3])
@pytest.mark.parametrize("tau", [0.0, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("size", [1, 2, 1000, 50_000])
def test_decay_inverse_is_the_inverse(epsilon, tau, size):
    """Just inside either end of age a's stretch of [0, 1) the age must be a: no draw needed."""
    law = DecayLaw(epsilon, tau)
    weights = law.weights(np.arange(size))
    edges = np.concatenate([[0.0], np.cumsum(weights)])
    ages = np.unique(np.linspace(0, size - 1, 500).astype(int))
    # The reference cumulative sum is itself rounded: leave out ages too rare for it to resolve.
    wide = weights[ages] / edges[-1] > 1e-8
    ages = ages[wide]
    for inside in (1e-4, 0.5, 1 - 1e-4):
        uniforms = (edges[ages] + inside * weights[ages]) / edges[-1]
        assert np.array_equal(law.ages(uniforms, size), ages)
    extremes = law.ages(np.array([0.0, 1.0 - 2.0**-53]), size)
    assert extremes[0] == 0
    assert 0 <= extremes[1] < size
    k, geometric, floor = law.masses(size)
    assert geometric + floor == pytest.approx(weights.sum(), rel=1e-9)
    assert 1 <= k <= size


def test_numbers_known_for_the_papers_settings():
    """Sums computed independently, by adding up the weights one by one."""
    for epsilon, tau, n, age, total in [
        (1e-5, 0.1, 1_000_000, 230_257, 166_974),
        (1e-4, 0.1, 1_000_000, 23_025, 106_698),
        (1e-4, 0.01, 100_000, 46_049, 10_440),
    ]:
        k, geometric, floor = DecayLaw(epsilon, tau).masses(n)
        assert abs(k - age) <= 1
        assert geometric + floor == pytest.approx(total, abs=1)


class Recorder:
    """A replay whose sampler has lived: adds, draws and TD errors before the law is tested.

    Beside it a plain dictionary of priorities by id is kept by the definitions alone, so that the
    law that draws must follow is not read from the tree they come from.
    """

    QUOTA, FLOOR, ALPHA = 20.0, 0.01, 0.6

    def __init__(self, name: str, capacity: int, added: int, seed: int = 3) -> None:
        rng = np.random.default_rng(seed)
        sampler = make_sampler(
            name,
            capacity=capacity,
            rng=generator(seed, "replay"),
            quota=self.QUOTA,
            floor=self.FLOOR,
            alpha=self.ALPHA,
            total_steps=added,
        )
        self.name = name
        self.replay = Replay(1, 1, capacity, sampler=sampler)
        self.replay.begin_episode([0.0])
        self.priorities: dict[int, float] = {}
        self.measured: dict[int, float] = {}
        for step in range(added):
            self.replay.add([0.0], 0.0, [0.0], False, False)
            self.priorities.pop(step - capacity, None)
            self.measured.pop(step - capacity, None)
            largest = max(self.measured.values(), default=1.0)
            self.priorities[step] = self.QUOTA if name == "cuer" else largest
            if step % 7 == 0:
                _, ids = self.replay.sample(32)
                self.pay(ids)
                errors = rng.exponential(size=ids.shape) ** 2
                self.replay.update_priorities(ids, errors)
                self.rank(ids, errors)

    def pay(self, ids: np.ndarray) -> None:
        """CUER: each draw pays off one, down to the floor."""
        for i in ids.ravel().tolist():
            if self.name == "cuer":
                self.priorities[i] = max(self.priorities[i] - 1.0, self.FLOOR)

    def rank(self, ids: np.ndarray, errors: np.ndarray) -> None:
        """PER: (|TD error| + 1e-6)^alpha; newcomers get the largest of those still stored."""
        for i, error in zip(ids.ravel().tolist(), errors.ravel().tolist(), strict=True):
            if self.name == "per":
                self.priorities[i] = (abs(error) + 1e-6) ** self.ALPHA
                self.measured[i] = self.priorities[i]

    def law(self) -> np.ndarray:
        """The probability of each stored transition, oldest first, by the definitions."""
        if self.name == "decay":
            return exact_decay_law(len(self.priorities), 1e-5, 0.1)
        if self.name == "swd":
            ages = np.arange(len(self.priorities))[::-1]
            linear = np.maximum(0.1, 1.0 - ages / 250_000)
            return linear / linear.sum()
        weights = np.array([self.priorities[i] for i in sorted(self.priorities)])
        return weights / weights.sum()


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(("capacity", "added"), [(500, 1), (500, 60), (500, 500), (300, 1234)])
def test_every_sampler_follows_its_law_after_a_life(name, capacity, added):
    recorder = Recorder(name, capacity, added)
    replay, law = recorder.replay, recorder.law()
    oldest = replay.added - replay.size
    assert sorted(recorder.priorities) == list(range(oldest, added))
    told = replay.sampler.probabilities(oldest, added)
    np.testing.assert_allclose(told, law, rtol=1e-9)
    if name == "cuer":
        # Its law moves with every draw: compare single draws with the law just before each.
        expected, drawn = np.zeros(replay.size), np.zeros(4000, int)
        for k in range(len(drawn)):
            expected += recorder.law()
            drawn[k] = replay.sampler.draw(1, 1, oldest, added)[0][0, 0]
            recorder.pay(drawn[k])
        law = expected / expected.sum()
    else:
        drawn = replay.sampler.draw(10, 4000, oldest, added)[0]
    assert chi_square(drawn, law, oldest) > P_MIN


def test_wrong_samplers_fail_the_same_test():
    """The test has teeth: near misses of the decay law are all found out."""
    capacity = added = 1000
    law = exact_decay_law(capacity, 1e-3, 0.1)
    draw = {
        "right": DecaySampler(generator(4, "replay"), 1e-3, 0.1),
        "no floor": DecaySampler(generator(4, "replay"), 1e-3, 0.0),
        "wrong rate": DecaySampler(generator(4, "replay"), 1.2e-3, 0.1),
        "wrong floor": DecaySampler(generator(4, "replay"), 1e-3, 0.45),
        "uniform": make_sampler("uniform", capacity=capacity, rng=generator(4, "replay")),
    }
    p = {n: chi_square(s.draw(1, 100_000, 0, added)[0], law, 0) for n, s in draw.items()}
    # 0.1 is reached at age 2,302 only: within a thousand transitions, no floor is the same law.
    assert p.pop("right") > P_MIN
    assert p.pop("no floor") > P_MIN
    assert all(value < P_MIN for value in p.values()), p
    shifted = draw["right"].draw(1, 100_000, 0, added)[0]
    assert chi_square(np.maximum(shifted - 20, 0), law, 0) < P_MIN


def test_prioritised_replay_by_hand():
    capacity = 8
    sampler = make_sampler(
        "per", capacity=capacity, rng=generator(0, "replay"), alpha=0.5, beta=0.4, total_steps=100
    )
    replay = Replay(1, 1, capacity, sampler=sampler)
    replay.begin_episode([0.0])
    for _ in range(4):
        replay.add([0.0], 0.0, [0.0], False, False)
    errors = np.array([0.0, -4.0, 9.0, 0.25])
    replay.update_priorities(np.arange(4), errors)
    replay.add([0.0], 0.0, [0.0], False, False)
    priorities = (np.abs(errors) + 1e-6) ** 0.5
    priorities = np.append(priorities, priorities.max())
    law = priorities / priorities.sum()
    assert np.allclose(sampler.probabilities(0, 5), law)
    batch, ids = replay.sample(64, 2)
    beta = 0.4 + 0.6 * 5 / 100
    weights = (5 * law[ids]) ** -beta
    weights /= weights.max(axis=1, keepdims=True)
    assert np.allclose(batch.weight.numpy(), weights, rtol=1e-6)
    assert sampler.beta_at(0) == 0.4
    assert sampler.beta_at(100) == sampler.beta_at(10_000) == 1.0


def test_a_spike_of_td_errors_does_not_outlive_the_transitions_that_had_it():
    """Newborn critics have huge errors; what arrives later must not carry them."""
    capacity = 6
    sampler = make_sampler("per", capacity=capacity, rng=generator(0, "replay"), alpha=1.0)

    def newcomer(transition: int) -> float:
        sampler.add(transition)
        oldest = max(0, transition + 1 - capacity)
        return float(abs(sampler.array(oldest, transition + 1)[-1]))

    assert [newcomer(i) for i in range(4)] == [1.0] * 4
    sampler.update(np.arange(4), np.array([20.0, 900.0, 30.0, 10.0]), 0)
    assert newcomer(4) == newcomer(5) == pytest.approx(900.0)
    # Drawn again, the spike is measured to be gone. 4 and 5 still hold it, but do not hand it on.
    sampler.update(np.array([1]), np.array([5.0]), 0)
    assert newcomer(6) == pytest.approx(30.0)  # overwrites 0
    sampler.update(np.array([4, 5]), np.array([3.0, 7.0]), 1)
    assert newcomer(7) == pytest.approx(30.0)  # overwrites 1
    assert newcomer(8) == pytest.approx(10.0)  # overwrites 2, which had the 30
    # Evicted with its errors unmeasured again, a spike is gone too.
    sampler.update(np.array([3, 4, 5]), np.array([800.0, 3.0, 7.0]), 3)
    assert newcomer(9) == pytest.approx(7.0)  # overwrites 3
    assert [newcomer(i) for i in (10, 11)] == pytest.approx([7.0, 1.0])  # nothing measured is left


def test_prioritised_replay_forgets_a_spike_while_it_trains():
    """With errors of 1 after a spike, newcomers' priorities come back to 1 within a few steps."""
    capacity = 5000
    sampler = make_sampler("per", capacity=capacity, rng=generator(1, "replay"))
    replay = Replay(1, 1, capacity, sampler=sampler)
    replay.begin_episode([0.0])
    given = []
    for step in range(1200):
        replay.add([0.0], 0.0, [0.0], False, False)
        given.append(float(abs(sampler.array(step, step + 1)[0])))
        if step >= 200:
            _, ids = replay.sample(64)
            replay.update_priorities(ids, np.full(ids.shape, 1e4 if step == 500 else 1.0))
    assert given[501] == pytest.approx(1e4**0.6)
    settled = (1.0 + 1e-6) ** 0.6
    assert given[700:] == pytest.approx([settled] * 500)


def test_prioritised_replay_ignores_evicted_and_refuses_nonsense():
    replay = Recorder("per", 10, 25).replay
    before = replay.sampler.probabilities(15, 25)
    replay.update_priorities(np.array([3, 14]), np.array([1e6, 1e6]))
    assert np.array_equal(before, replay.sampler.probabilities(15, 25))
    for ids, errors in (([15, 16], [1.0, np.nan]), ([15, 16], [1.0])):
        with pytest.raises(ReplayError):
            replay.update_priorities(np.array(ids), np.array(errors))
    assert np.array_equal(before, replay.sampler.probabilities(15, 25))


def test_cuer_pays_off_one_per_draw_and_evens_out_the_counts():
    capacity, quota, steps = 200, 16, 2000
    counts = {}
    for name in ("uniform", "cuer"):
        sampler = make_sampler(name, capacity=capacity, rng=generator(5, "replay"), quota=quota)
        replay = Replay(1, 1, capacity, sampler=sampler)
        replay.begin_episode([0.0])
        for step in range(steps):
            replay.add([0.0], 0.0, [0.0], False, False)
            if step >= 50:
                replay.sample(quota)
        counts[name] = replay.counts[capacity : steps - capacity]
    assert counts["cuer"].mean() == pytest.approx(quota, rel=0.1)
    assert counts["cuer"].std() < 0.5 * counts["uniform"].std()

    sampler = make_sampler("cuer", capacity=4, rng=generator(6, "replay"), quota=3.0, floor=0.5)
    for i in range(4):
        sampler.add(i)
    owed = np.full(4, 3.0)
    for _ in range(20):
        ids, _ = sampler.draw(1, 3, 0, 4)
        owed = np.maximum(owed - np.bincount(ids.ravel(), minlength=4), 0.5)
        assert np.allclose(sampler.array(0, 4), owed)


BATCH, WARMUP, LIFE, ROOM = 16, 30, 800, 350


def lived(ratio: int, quota: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Train on nothing: ages of all draws, and how often each age was and should be drawn.

    What should be is the sum of the laws before each batch, from a dictionary of priorities that
    pays off by the definition. Within a batch the law stands still.
    """
    sampler = make_sampler("cuer", capacity=ROOM, rng=generator(11, "replay"), quota=quota)
    owed: dict[int, float] = {}
    ages: list[np.ndarray] = []
    expected = np.zeros(ROOM)
    for step in range(LIFE):
        sampler.add(step)
        owed[step] = quota
        owed.pop(step - ROOM, None)
        for _ in range(ratio if step >= WARMUP else 0):
            weights = np.array([owed[i] for i in range(step, step - len(owed), -1)])
            expected[: len(owed)] += BATCH * weights / weights.sum()
            ids = sampler.draw(1, BATCH, step + 1 - len(owed), step + 1)[0].ravel()
            ages.append(step - ids)
            for i in ids.tolist():
                owed[i] = max(owed[i] - 1.0, 0.01)
    drawn = np.concatenate(ages)
    return drawn, np.bincount(drawn, minlength=ROOM), expected


def simulated_mean_age(ratio: int, quota: float) -> float:
    """The same life by nothing but the definition and numpy's own weighted choice."""
    rng = np.random.default_rng(12)
    owed = np.zeros(0)
    total = draws = 0
    for step in range(LIFE):
        owed = np.append(owed, quota)[-ROOM:]
        for _ in range(ratio if step >= WARMUP else 0):
            chosen = rng.choice(len(owed), BATCH, p=owed / owed.sum())
            total += (len(owed) - 1 - chosen).sum()
            draws += BATCH
            owed = np.maximum(owed - np.bincount(chosen, minlength=len(owed)), 0.01)
    return total / draws


@pytest.mark.parametrize("quota", ["batch", "step"])
@pytest.mark.parametrize("ratio", [1, 10])
def test_cuer_at_both_replay_ratios_in_both_readings(ratio, quota):
    owed = BATCH * (ratio if quota == "step" else 1)
    ages, observed, expected = lived(ratio, owed)
    assert chi_square(ages, expected / expected.sum(), 0) > P_MIN
    assert ages.mean() == pytest.approx(simulated_mean_age(ratio, owed), rel=0.05)
    sizes = np.minimum(np.arange(WARMUP, LIFE) + 1, ROOM)
    uniform = ((sizes - 1) / 2).mean()
    if ratio > 1 and quota == "batch":
        # A tenth of the draws is of newcomers, the rest is uniform over what is paid off.
        assert 0.85 < ages.mean() / uniform < 0.95
        flat = ratio * BATCH * np.array([(1 / sizes[sizes > age]).sum() for age in range(ROOM)])
        bins = slice(100, ROOM)
        old, even = observed[bins].reshape(5, 50).sum(1), flat[bins].reshape(5, 50).sum(1)
        np.testing.assert_allclose(old, 0.9 * even, rtol=0.05)
    else:
        # As much is owed as is drawn, so the debt of the warm-up stays and draws are young.
        assert ages.mean() < 2 * WARMUP < 0.5 * uniform


@pytest.mark.parametrize("name", SAMPLERS)
def test_counts_are_exact_and_outlive_eviction(name):
    capacity, quota = 50, 32
    sampler = make_sampler(name, capacity=capacity, rng=generator(7, "replay"), quota=quota)
    replay = Replay(1, 1, capacity, sampler=sampler)
    replay.begin_episode([0.0])
    reference = np.zeros(3000, dtype=int)
    for step in range(3000):
        replay.add([0.0], 0.0, [0.0], False, False)
        assert len(replay.counts) >= step + 1
        if step % 3 == 0:
            _, ids = replay.sample(8, 4)
            np.add.at(reference, ids.ravel(), 1)
    assert np.array_equal(replay.counts[:3000], reference)
    assert replay.counts.sum() == 1000 * quota
    assert not replay.counts.flags.writeable
    replay.take(np.arange(2950, 3000))
    assert replay.counts.sum() == 1000 * quota


@pytest.mark.parametrize("name", SAMPLERS)
def test_same_seed_same_draws(name):
    runs = [Recorder(name, 40, 100, seed=8).replay.sample(64)[1] for _ in range(2)]
    assert np.array_equal(*runs)
    assert not np.array_equal(runs[0], Recorder(name, 40, 100, seed=9).replay.sample(64)[1])


def test_only_samplers_with_feedback_say_so():
    feedback = {
        n: make_sampler(n, capacity=1, rng=generator(0, "replay")).feedback for n in SAMPLERS
    }
    assert feedback == {"uniform": False, "decay": False, "per": True, "cuer": True, "swd": False}


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "decay", "epsilon": -1e-9},
        {"name": "decay", "epsilon": float("nan")},
        {"name": "decay", "tau": 1.1},
        {"name": "per", "alpha": -0.1},
        {"name": "per", "beta": 2.0},
        {"name": "per", "total_steps": 0},
        {"name": "cuer", "quota": 0.0},
        {"name": "cuer", "floor": 0.0},
        {"name": "newest"},
    ],
)
def test_settings_are_checked(bad):
    with pytest.raises(ConfigError):
        make_sampler(**bad, capacity=10, rng=generator(0, "replay"))


def test_a_sampler_of_another_capacity_is_refused():
    for name in ("per", "cuer"):
        sampler = make_sampler(name, capacity=10, rng=generator(0, "replay"))
        with pytest.raises(ReplayError, match="capacity 10"):
            Replay(1, 1, 11, sampler=sampler)


def test_weights_fall_with_age():
    weights = DecayLaw(1e-3, 0.1).weights(np.arange(5000))
    assert weights[0] == 1.0
    assert all(a >= b for a, b in pairwise(weights))
    assert weights[-1] == 0.1
