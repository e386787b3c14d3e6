"""`fog import`: official result files, or tidy tables, into one folder with their provenance."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from diagnostics.errors import AnalysisError
from diagnostics.paper import tables as paper
from diagnostics.paper.methods import method as facts
from diagnostics.peers import tidy
from diagnostics.peers.checkouts import Repository, commit, detect

_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*")
_LICENCES = ("LICENSE", "LICENSE.md", "LICENSE.txt", "COPYING")


@dataclass
class Taken:
    """One method's tasks from one file."""

    method: str
    source: dict[str, Any]
    rows: pd.DataFrame
    rank: int = 0


@dataclass
class Outcome:
    """What an import did: rows written by method, and lines about what was not taken."""

    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def import_peers(checkouts: Sequence[Path], out: Path) -> Outcome:
    """Read every checkout and write the tidy tables into `out`, beside those imported before.

    Checkouts are of the repositories in `checkouts.REPOSITORIES`, or folders of tidy tables; `out`
    is a new or empty folder, or one that an import has written. Nothing is written before
    everything was read and checked.
    """
    outcome = Outcome()
    taken = _earlier(out)
    for checkout in checkouts:
        repository = detect(checkout)
        new = _tidy(checkout) if repository is None else _official(checkout, repository, outcome)
        for part in new:
            taken = _added(taken, part)
    order = {task: place for place, task in enumerate(paper.tasks()["name"])}
    noted: dict[str, Any] = {}
    for name in dict.fromkeys(part.method for part in taken):
        parts = [part for part in taken if part.method == name]
        rows = pd.concat([part.rows for part in parts]).assign(method=name)[list(tidy.COLUMNS)]
        rows = rows.sort_values(
            ["task", "seed", "env_step"], key=lambda at: at.map(order) if at.name == "task" else at
        )
        outcome.tables[name] = tidy.check(rows.reset_index(drop=True), out / f"{name}.csv")
        noted[name] = [
            {**part.source, "rank": part.rank, "tasks": sorted(part.rows["task"].unique())}
            for part in parts
        ]
    _write(outcome.tables, noted, out)
    return outcome


def _official(checkout: Path, repository: Repository, outcome: Outcome) -> list[Taken]:
    at = commit(checkout)
    parts, outside = [], set()
    for feed in repository.feeds:
        path = checkout / feed.file
        if not path.exists():
            outcome.notes.append(f"not there: {path} ({feed.method})")
            continue
        found = feed.read(path)
        if found.rows.empty:
            raise AnalysisError(f"{path} holds no task of the paper")
        outside.update(found.outside)
        outcome.notes += found.notes
        source = {
            "repository": repository.name,
            "commit": at,
            "file": " ".join(filter(None, (feed.file, feed.part))),
            "sha256": _digest(path),
            "licence": repository.licence,
            "licence_file": _licence(checkout),
        }
        parts.append(Taken(feed.method, source, found.rows, feed.rank))
    if outside:
        some = ", ".join(sorted(outside)[:4])
        outcome.notes.append(
            f"left out, not among the paper's 41 tasks: {len(outside)} of {repository.name} "
            f"({some}, ...)"
        )
    return parts


def _tidy(folder: Path) -> list[Taken]:
    parts = []
    noted = tidy.provenance(folder)
    for path in tidy.tables(folder):
        table = tidy.read(path)
        for name, rows in table.groupby("method", sort=False, observed=True):
            known = facts(str(name))
            source = {
                "repository": known.repository or None,
                "commit": known.commit or None,
                "file": known.file or path.name,
                "sha256": _digest(path),
                "licence": known.licence or "unknown",
                "through": f"tidy table {path.name}",
            }
            earlier = noted.get(str(name), [source])
            for entry in earlier:
                tasks = entry.get("tasks")
                own = rows if tasks is None else rows[rows["task"].isin(tasks)]
                plain = {k: v for k, v in entry.items() if k not in ("rank", "tasks")}
                if len(own):
                    kept = own.drop(columns="method")
                    parts.append(Taken(str(name), plain, kept, int(entry.get("rank", 0))))
    return parts


def _earlier(out: Path) -> list[Taken]:
    """What an earlier import left in `out`, which holds nothing else."""
    if out.exists() and not out.is_dir():
        raise AnalysisError(f"{out} is a file: give a folder, such as --out peers")
    if not out.is_dir() or not any(out.iterdir()):
        return []
    if not (out / tidy.PROVENANCE).exists():
        raise AnalysisError(f"{out} holds other files: give a new folder, such as --out peers")
    noted = tidy.provenance(out)
    for path in tidy.tables(out):
        if path.stem not in noted:
            raise AnalysisError(f"{path} was not written by `fog import`: move it elsewhere")
    return _tidy(out)


def _added(taken: list[Taken], new: Taken) -> list[Taken]:
    """All parts, each task of a method once: replaced from the same file, otherwise by rank."""
    kept = []
    rows = new.rows
    for part in taken:
        if part.method == new.method:
            same = all(part.source.get(key) == new.source[key] for key in ("repository", "file"))
            if same or part.rank > new.rank:
                part = Taken(part.method, part.source, _without(part.rows, rows), part.rank)
            else:
                rows = _without(rows, part.rows)
        if len(part.rows):
            kept.append(part)
    return [*kept, Taken(new.method, new.source, rows, new.rank)] if len(rows) else kept


def _without(rows: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    return rows[~rows["task"].isin(set(others["task"]))]


def _digest(path: Path) -> str:
    """SHA-256 of a file, or of all files below a folder in the order of their names."""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(at for at in path.rglob("*") if at.is_file())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _licence(checkout: Path) -> str | None:
    return next((name for name in _LICENCES if (checkout / name).is_file()), None)


def _write(tables: dict[str, pd.DataFrame], noted: dict[str, Any], out: Path) -> None:
    for name in tables:
        if not _NAME.fullmatch(name):
            raise AnalysisError(f"method {name!r} cannot name a file: use letters, digits, - and .")
    out.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        _replace(out / f"{name}.csv", rows.to_csv(index=False))
    note = {"version": tidy.VERSION, "methods": noted}
    _replace(out / tidy.PROVENANCE, json.dumps(note, indent=1) + "\n")


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
