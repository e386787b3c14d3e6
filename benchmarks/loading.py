"""Seconds and memory to compare, report and load hundreds of runs.

    python benchmarks/loading.py [--runs 75 150 300] [--layout joined|parts] [--clock processor]

The runs are copies: the six fixture runs of the tests, over and over, under other tasks and seeds,
in a temporary folder. Their numbers mean nothing; their number and size are what is measured. Each
command is a process of its own, start of Python included; memory is the peak of its resident set.
On a busy machine take the clock of the processor: user and system time of all threads. Limits for
300 runs: `fog compare` 3 s and 400 MB, `fog report` 15 s.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from fog.records import joining
from fog.records.ledger import fingerprint, sealed
from fog.records.tables import part_bytes

FIXTURE = Path(__file__).parents[1] / "tests" / "fixtures" / "runs" / "cartpole-swingup"
TASKS = 5
COMPARE, REPORT = "fog compare", "fog report"
LIMITS = {COMPARE: (3.0, 400.0), REPORT: (15.0, None)}
"""Seconds and megabytes for 300 runs."""

TABLES = {
    "runs.dormancy": "load({path!r}).dormancy",
    "a column of it": "load({path!r}).table('dormancy', columns=('positive',))",
}


def main() -> int:
    """Print the table; 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, nargs="+", default=[75, 150, 300])
    parser.add_argument(
        "--layout",
        choices=("joined", "parts"),
        default="joined",
        help="how a run of today ends, or one file per measurement as runs of earlier versions",
    )
    parser.add_argument("--clock", choices=("wall", "processor"), default="wall")
    options = parser.parse_args()
    exceeded = False
    with tempfile.TemporaryDirectory() as scratch:
        models = [
            prepare(
                source, Path(scratch, "models", source.parent.name, source.name), options.layout
            )
            for source in sorted(FIXTURE.glob("*/seed*"))
        ]
        print(
            f"copies of {len(models)} fixture runs, {options.layout}; "
            f"seconds ({options.clock} clock), peak megabytes"
        )
        print("| runs |", " | ".join((*LIMITS, *TABLES)), "|\n" + "|---" * 5 + "|")
        for count in options.runs:
            home = Path(scratch, str(count))
            copies(models, home, count)
            cells = []
            for name, command in commands(home, Path(scratch)).items():
                seconds, megabytes = measured(command, options.clock)
                cells.append(f"{seconds:.1f} s, {megabytes:.0f} MB")
                most_seconds, most_megabytes = LIMITS.get(name, (None, None))
                exceeded |= count == 300 and (
                    (most_seconds is not None and seconds > most_seconds)
                    or (most_megabytes is not None and megabytes > most_megabytes)
                )
            print("|", count, "|", " | ".join(cells), "|", flush=True)
            shutil.rmtree(home)
    return int(exceeded)


def prepare(source: Path, home: Path, layout: str) -> Path:
    """A fixture run as a run directory of today, with a record, or as one of earlier versions."""
    shutil.copytree(source, home)
    ledger = {}
    for folder in sorted((home / "probes").iterdir()):
        table = pq.read_table(folder)
        shutil.rmtree(folder)
        folder.mkdir()
        at = 0
        steps = table["env_step"].to_numpy()
        while at < len(table):
            end = at + int((steps[at:] == steps[at]).argmin() or len(table) - at)
            part = folder / f"{steps[at]:012d}-00.parquet"
            part.write_bytes(part_bytes(table.slice(at, end - at)))
            ledger[part.relative_to(home).as_posix()] = fingerprint(part, 1 << 30)
            at = end
    if layout == "joined":
        for name in ("evals.csv", "train.csv", "events.csv"):
            ledger[name] = fingerprint(home / name, 1 << 30)
        describe(home, joining.join(home, ledger))
    return home


def describe(home: Path, files: joining.Record) -> None:
    """Write a record of the files into the manifest."""
    manifest = json.loads((home / "manifest.json").read_text())
    document = sealed({**manifest, "files": files})
    (home / "manifest.json").write_text(json.dumps(document))


def copies(models: list[Path], home: Path, count: int) -> None:
    """So many runs, on a few tasks, of all variants, each with a seed of its own."""
    for k in range(count):
        model = models[k % len(models)]
        task, seed = f"copy-{k // len(models) % TASKS}", k // len(models) // TASKS * 2 + k % 2
        target = home / task / model.parent.name / f"seed{seed}"
        shutil.copytree(model, target)
        config = (target / "config.yaml").read_text()
        config = re.sub(r"(?m)^  task: .*$", f"  task: {task}", config)
        (target / "config.yaml").write_text(re.sub(r"(?m)^  seed: .*$", f"  seed: {seed}", config))
        manifest = json.loads((target / "manifest.json").read_text())
        if manifest.get("files"):
            files = manifest["files"] | {"config.yaml": fingerprint(target / "config.yaml")}
            describe(target, files)


def commands(home: Path, scratch: Path) -> dict[str, list[str]]:
    """What is measured, by name."""
    fog = [sys.executable, "-m", "fog"]
    page = scratch / "report.html"
    found = {
        COMPARE: [*fog, "compare", "--runs", str(home)],
        REPORT: [*fog, "report", "--runs", str(home), "--out", str(page)],
    }
    for name, code in TABLES.items():
        lines = f"from diagnostics import load; assert len({code.format(path=str(home))})"
        found[name] = [sys.executable, "-c", lines]
    return found


def measured(command: list[str], clock: str) -> tuple[float, float]:
    """Seconds by a clock and peak megabytes of a command.

    Raises:
        SystemExit: it failed, or had anything to complain about.
    """
    began = time.perf_counter()
    with tempfile.TemporaryFile("w+") as told:
        process = subprocess.Popen(command, stdout=told, stderr=told)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        if clock == "processor":
            seconds = usage.ru_utime + usage.ru_stime
        told.seek(0)
        text = told.read()
    if process.returncode or "problem:" in text:
        raise SystemExit(f"{' '.join(command)} failed: {text.strip()[-500:]}")
    return seconds, usage.ru_maxrss / 1000


if __name__ == "__main__":
    sys.exit(main())
