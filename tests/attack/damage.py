"""Every file of a run, damaged in every way, then resumed, loaded, compared and exported."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random

import fog
from fog.errors import UserError
from fog.records import checkpoint
from tests.attack.lab import Lab, clear, lost, run_of
from tests.attack.outcomes import LOST, REFUSED, SURVIVED, WRONG, Verdict
from tests.attack.reading import differences

Case = tuple[str, Callable[[], Verdict]]
Way = Callable[[Path, Path, Random], None]


def _truncate(path: Path, _: Path, random: Random) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw[: random.randrange(max(1, len(raw)))])


def _flip(path: Path, _: Path, random: Random) -> None:
    raw = bytearray(path.read_bytes())
    if raw:
        raw[random.randrange(len(raw))] ^= 1 << random.randrange(8)
    path.write_bytes(raw)


def _append(path: Path, _: Path, random: Random) -> None:
    path.write_bytes(path.read_bytes() + random.randbytes(64))


def _swap(path: Path, other: Path, _: Random) -> None:
    if other.is_file():
        shutil.copy(other, path)
    else:
        path.unlink()


def _directory(path: Path, _: Path, __: Random) -> None:
    path.unlink()
    path.mkdir()


WAYS: dict[str, Way] = {
    "truncated": _truncate,
    "deleted": lambda path, _, __: path.unlink(),
    "a bit flipped": _flip,
    "another bit flipped": _flip,
    "emptied": lambda path, _, __: path.write_bytes(b""),
    "garbage appended": _append,
    "of another run": _swap,
    "a directory": _directory,
}


def contents(run: Path) -> dict[str, bytes]:
    """Every file of a run but its lock, by name."""
    return {
        path.relative_to(run).as_posix(): path.read_bytes()
        for path in sorted(run.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def _cases(lab: Lab, run: Path, names: list[str], share: float) -> Iterator[tuple[str, str]]:
    for name in names:
        for way in WAYS:
            if lab.random.random() < share:
                yield name, way


def _damaged(lab: Lab, run: Path, other: Path, name: str, way: str) -> None:
    WAYS[way](run / name, other / name, lab.random)


class Killed:
    """Runs that were killed: in the middle, and while they joined their tables."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.homes = {
            "in the middle": self._killed("middle", int(0.7 * lab.changes)),
            "while joining": self._killed("joining", lab.changes - 5),
        }

    def _killed(self, name: str, moment: int) -> Path:
        for seed in (0, 1):
            # In a folder of its own, so that both make the same changes.
            config = self.lab.config(f"{name}{seed}", seed=seed)
            watch = Path(config.runtime.out)
            ended = self.lab.fork(self.lab.command(config), kill_at=moment, watch=watch)
            assert ended.code == -9, ended
        return self.lab.home / f"{name}0"

    def cases(self, share: float) -> Iterator[Case]:
        """Damage, then resume."""
        for when, home in self.homes.items():
            names = list(contents(run_of(home)))
            for name, way in _cases(self.lab, run_of(home), names, share):
                yield f"killed {when}, {name} {way}", partial(self._resumed, home, name, way)

    def _resumed(self, home: Path, name: str, way: str) -> Verdict:
        place = self.lab.fresh()
        run = run_of(place)
        shutil.copytree(run_of(home), run)
        _damaged(self.lab, run, run_of(home.with_name(home.name[:-1] + "1"), 1), name, way)
        before = contents(run)
        config = self.lab.config(place)
        ended = self.lab.fork(self.lab.command(config, "--resume"))
        verdict = ended.complaint()
        if verdict is None and ended.code == 0:
            verdict = self.lab.resumed(config)
        if verdict is None:
            verdict = lost(before, run, name) or ended.refusal()
        if verdict[0] == REFUSED:
            verdict = self._started_anew(run, before, name) or verdict
        clear(place)
        return verdict

    def _started_anew(self, run: Path, before: dict[str, bytes], name: str) -> Verdict | None:
        """A refused run must not be lost by the same command without `--resume`."""
        ended = self.lab.fork(self.lab.command(self.lab.config(run.parents[2])))
        if ended.code == 0:
            return LOST, "started anew over what was there"
        return ended.complaint() or lost(before, run, name)


def analysed(lab: Lab, share: float) -> Iterator[Case]:
    """Damage to one of two ended runs, then load all tables and compare them."""
    for name, way in _ended(lab, share):
        yield f"{name} {way}", partial(_analysed, lab, name, way)


def exported(lab: Lab, share: float) -> Iterator[Case]:
    """Damage to one of two ended runs, then export both and load the copies."""
    for name, way in _ended(lab, share):
        yield f"{name} {way}", partial(_exported, lab, name, way)


def agents(lab: Lab, share: float) -> Iterator[Case]:
    """Damage to a checkpoint, then load its agent."""
    names = [name for name in contents(lab.whole) if name.startswith("checkpoint/")]
    for name, way in _cases(lab, lab.whole, names, share):
        yield f"{name} {way}", partial(_agent, lab, name, way)


def _ended(lab: Lab, share: float) -> Iterator[tuple[str, str]]:
    names = [name for name in contents(lab.whole) if not name.startswith("checkpoint/")]
    return _cases(lab, lab.whole, names, share)


def _pair(lab: Lab, name: str, way: str) -> Path:
    home = lab.fresh() / "runs"
    ignored = shutil.ignore_patterns("checkpoint")
    shutil.copytree(lab.home / "whole", home, ignore=ignored)
    _damaged(lab, run_of(home), run_of(lab.home / "whole", 1), name, way)
    return home


def _analysed(lab: Lab, name: str, way: str) -> Verdict:
    home = _pair(lab, name, way)
    shown = lab.fork(["compare", "--json", "--runs", str(home)])
    verdict = shown.complaint()
    if verdict is None and shown.code:
        verdict = shown.refusal()
    elif verdict is None:
        verdict = _judged(lab, home)
        document = json.loads(shown.out)
        # It tells what is wrong with what it reads.
        if not document["problems"] and document["rows"] != _compared(lab):
            verdict = WRONG, "compare prints other numbers without a word"
    clear(home.parent)
    return verdict


def _compared(lab: Lab) -> list[dict[str, object]]:
    """The rows of `fog compare` for the undisturbed runs."""
    shown = lab.fork(["compare", "--json", "--runs", str(lab.home / "whole")])
    rows: list[dict[str, object]] = json.loads(shown.out)["rows"]
    return rows


def _exported(lab: Lab, name: str, way: str) -> Verdict:
    home = _pair(lab, name, way)
    out = home.parent / "kept"
    ended = lab.fork(["export", "--runs", str(home), "--out", str(out)])
    verdict = ended.complaint()
    if verdict is None and ended.code == 2:
        verdict = ended.refusal()
    elif verdict is None:
        verdict = _judged(lab, out, said=ended.out)
        if verdict[0] == REFUSED and ended.code == 0:
            verdict = WRONG, f"exit code 0 of an export with: {verdict[1]}"
    clear(home.parent)
    return verdict


def _judged(lab: Lab, home: Path, said: str = "") -> Verdict:
    """Whether what differs is told, and whether the other run is as it was."""
    changed, problems = differences(lab.home / "whole", home)
    attacked, other = (str(run_of(Path(), seed)) for seed in (0, 1))
    if other in changed or other in problems:
        return WRONG, f"the other run: {changed.get(other)} {problems.get(other)}"
    told = problems.get(attacked, []) or [line for line in said.splitlines() if attacked in line]
    if attacked in changed and not told:
        return WRONG, f"differs without a word: {changed[attacked]}"
    return (REFUSED, told[0]) if told else (SURVIVED, "")


def _agent(lab: Lab, name: str, way: str) -> Verdict:
    place = lab.fresh()
    run = run_of(place)
    shutil.copytree(lab.whole, run)
    _damaged(lab, run, lab.other, name, way)
    expected = [
        checkpoint.load_tensors(home / checkpoint.AGENT)
        for home in checkpoint.candidates(lab.whole / "checkpoint")
    ]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            found = fog.load_agent(run).state_dict()
        except UserError as error:
            return (REFUSED, str(error)) if "\n" not in str(error) else (WRONG, str(error))
        finally:
            clear(place)
    same = [
        all(found[key].equal(tensors[key]) for key in tensors) and found.keys() == tensors.keys()
        for tensors in expected
    ]
    if same[0]:
        return SURVIVED, ""
    return (REFUSED, str(said[0].message)) if any(same) and said else (WRONG, "another agent")
