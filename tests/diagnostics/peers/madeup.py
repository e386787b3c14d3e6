"""Made-up result files in the official formats, and where the real tidy set may lie.

The numbers are made up: a run's `value` at a step is a formula, so that readers can be checked.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from diagnostics.paper import tables as paper

ROOT = Path(__file__).parents[3]
SHARED = Path(os.environ.get("FOG_PEERS", ROOT.parent / "shared" / "peers"))
needs_shared = pytest.mark.skipif(
    not (SHARED / "bro-utd10.csv").is_file(), reason="the published curves are not at hand"
)

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


def value(seed: float, step: float) -> float:
    """What the made-up run of a seed returned at a step."""
    return round(step / 10_000 + seed / 1000, 3)


def long_csv(path: Path, name: str, tasks: dict[str, int], seeds=(0, 1000, 2000)) -> Path:
    """SimBa's format: tasks with the distance of their evaluations."""
    rows = [
        (name, task, seed, "avg_return", float(step), value(seed, step))
        for task, apart in tasks.items()
        for seed in seeds
        for step in range(0, 1_000_001, apart)
    ]
    # Their files carry a success metric and an unnamed index as well.
    rows.append((name, next(iter(tasks)), seeds[0], "avg_success", 0.0, 1.0))
    columns = ["exp_name", "env_name", "seed", "metric", "env_step", "value"]
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=columns).to_csv(path)
    return path


def simba(home: Path) -> Path:
    tasks = {"dog_run": 50_000, "h1_balance_hard_v0": 50_000, "myo_key_turn": 50_000}
    long_csv(home / "results/sac_simba.csv", "sac_simba", tasks)
    long_csv(home / "results/bro.csv", "bro", {"dog-run": 25_000}, seeds=(1, 2, 3))
    long_csv(home / "results/td7.csv", "TD7", {"acrobot-swingup": 25_000})
    long_csv(home / "results/dreamerv3.csv", "dreamerv3", {"acrobot_swingup": 25_000})
    long_csv(home / "results/tdmpc2.csv", "td_mpcv2", {"dog-run": 100_000, "h1-pole-v0": 100_000})
    (home / "LICENSE").write_text("Apache License\n")
    return home


def simbav2(home: Path) -> Path:
    ours = {"Ant_v4": 50_000, "dog-run": 100_000}
    for file in ("simbaV2_utd2", "simbaV2_utd8"):
        long_csv(home / f"results/{file}.csv", file, ours)
    for file in ("simbaV2_utd2_reset", "simba_utd2", "simba_utd2_reset", "simba_utd8"):
        long_csv(
            home / f"results/scaling/utd/{file}.csv", file, {"Ant-v4": 50_000, "dog_run": 50_000}
        )
    for file in ("bro_utd2", "bro_utd10"):
        long_csv(home / f"results/baseline/{file}.csv", file, {"Ant-v4": 25_000, "dog-run": 25_000})
    for file in ("sac", "crossq", "redq_utd20", "droq_utd20"):
        long_csv(home / f"results/baseline/{file}.csv", file, {"Ant-v4": 16_666})
    return home


def xqc(home: Path) -> Path:
    long_csv(home / "results/xqc.csv", "xqc", {"Ant-v4": 50_000, "dog-run": 100_000})
    # Pixels, not the paper's tasks: must not be read.
    long_csv(home / "results/xqc_visual.csv", "xqc", {"humanoid-run": 100_000})
    return home


def tdmpc2(home: Path) -> Path:
    folder = home / "results/tdmpc2"
    folder.mkdir(parents=True)
    for task, column in (("dog-run", "reward"), ("mw-assembly", "success"), ("cup-spin", "reward")):
        rows = [
            (step, value(seed, step) if column == "reward" else step / 1_000_000, seed)
            for seed in (1, 2, 3)
            for step in range(0, 1_000_001, 100_000)
        ]
        pd.DataFrame(rows, columns=["step", column, "seed"]).to_csv(
            folder / f"{task}.csv", index=False
        )
    return home


def bro(home: Path) -> Path:
    home.mkdir(parents=True)
    steps = 25_000 * np.arange(1, 41)
    returns = np.array([[value(seed, step) for seed in range(10)] for step in steps])
    with zipfile.ZipFile(home / "trainingdata.zip", "w") as archive:
        for folder in ("BRO", "BRO_fast"):
            for task, values in (
                ("dog-run", returns),
                ("assembly-v2-goal-observable", np.clip(returns / 100, 0, 1)),
                ("fish-swim", returns),
            ):
                buffer = io.BytesIO()
                np.save(buffer, values)
                archive.writestr(f"trainingdata/{folder}/{task}.npy", buffer.getvalue())
        archive.writestr("__MACOSX/trainingdata/BRO/._dog-run.npy", b"not an array")
    return home


def nikishin(home: Path) -> Path:
    for ratio in (1, 32):
        for resets in ("False", "True"):
            end = "_reset_interval_200000" if resets == "True" else ""
            name = f"max_steps_2000000_resets_{resets}_config.updates_per_step_{ratio}{end}"
            for task in ("hopper-hop", "swimmer-swimmer15"):
                folder = home / "curves/sac" / name / task
                folder.mkdir(parents=True)
                for seed in (0, 1, 2):
                    steps = range(5_000, 2_000_001, 5_000)
                    lines = [f"{step} {value(seed, step)}" for step in steps]
                    (folder / f"{seed}.txt").write_text("\n".join(lines) + "\n")
    return home


CHECKOUTS = {
    "tdmpc2": tdmpc2,
    "simba": simba,
    "bro": bro,
    "simbav2": simbav2,
    "xqc": xqc,
    "nikishin": nikishin,
}


def tidy(home: Path, **methods: dict[str, dict[int, dict[int, float]]]) -> Path:
    """Tidy tables of values by method, task, seed and step; `_` in a method's name means `-`."""
    home.mkdir(parents=True, exist_ok=True)
    metric = paper.tasks().set_index("name")["metric"]
    for key, tasks in methods.items():
        name = key.replace("_", "-")
        rows = [
            (name, task, seed, step, at, metric[task])
            for task, seeds in tasks.items()
            for seed, curve in seeds.items()
            for step, at in curve.items()
        ]
        columns = ["method", "task", "seed", "env_step", "value", "metric"]
        pd.DataFrame(rows, columns=columns).to_csv(home / f"{name}.csv", index=False)
    return home


def small(home: Path) -> Path:
    """A tidy set with every group of tasks, for commands and notebooks: five methods, no truth."""
    apart = {"tdmpc2": 100, "simba-utd2": 50, "bro-utd2": 25, "bro-utd10": 25, "xqc": 100}
    tasks = paper.tasks()
    methods = {}
    for place, (name, thousands) in enumerate(apart.items()):
        rng = np.random.default_rng(place)
        methods[name] = {
            task.name: {
                seed: {
                    step: float(
                        task.normaliser
                        * np.clip(0.9 * step / task.steps + 0.03 * rng.standard_normal(), 0, 1)
                    )
                    for step in range(0, task.steps + 1, 1000 * thousands)
                }
                for seed in range(4)
            }
            for task in tasks.itertuples()
            if not (name == "xqc" and task.metric == "success")
        }
    return tidy(home, **{name.replace("-", "_"): rows for name, rows in methods.items()})


def provenance(home: Path, version: int = 1) -> None:
    (home / "peers.json").write_text(json.dumps({"version": version, "methods": {}}))
