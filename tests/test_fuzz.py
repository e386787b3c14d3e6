"""Whatever is typed or read: no traceback, a documented exit code, one line on what is wrong.

Each case is a command line, a config, a plan or a run directory that was put together from parts
that once broke something, and from random ones. The ordinary tests try a fixed few; `make
test-slow` tries two thousand.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from fog.cli import main
from fog.settings.config import GROUPS, Config
from fog.settings.config_file import to_yaml
from fog.system.text import LINE, plain
from tests.training import tiny

FIXTURE = Path(__file__).parent / "fixtures" / "runs" / "cartpole-swingup"
CODES = {0, 1, 2}
"""1: nothing to export, or a notebook failed. The others of `fog.cli.main` need a run that runs."""

# fmt: off
# Values that people and programs have put where something else was expected.
NASTY = (
    "", " ", "-", "--", "none", "null", "true", "nan", "inf", "-inf", "1e400", "-1e400", "1e-400",
    "0", "-1", "-0", "0.0", "1_000", "0x10", "1e3", "3.5", "9" * 20, "9" * 400, "9" * 5000,
    "a" * 3000, "é", "日本", "٣", "\udcff", "\x1b[31mred\x07", "\x00", "a\nb", "$x^{$", "%s%n",
    "{0}", "/dev/null", "/dev/full", "/proc/self/mem", "~", "a/b", "gym:", "gym:\x1b", ":",
    "2026-13-01", "12:30:45", "2026-01-01T00:00:00Z", "[a]", "{a: b}", "!!int x",
    "!!python/name:os",
)
YAML = (
    "2026-13-01", "2026-01-01", "2026-01-01 12:30:45", "12:30:45", "190:20:30", "9" * 5000,
    "1e400", "-1", "0", ".nan", ".inf", "-.inf", "null", "~", "true", "[]", "{}", "[a, [b, [c]]]",
    "[1, 2]", "[[1], [2]]", "{a: {b: c}}", "{a: 1, a: 2}", "? [a]\n: b", "? {a: b}\n: c",
    "!!int x", "!!float x", "!!bool x", "!!timestamp x", "!!binary x", "!!set {a}",
    "!!omap [a: 1]", "!!pairs [a]", "!foo x", "!!python/object/apply:os.system [true]", "&a [*a]",
    "*unknown", "&a {<<: *a}", "{<<: 3}", "<<: []", "'", '"\\x1b[31m"', '"\\uD800"', "|\n  text",
    ">-\n  text", "- a\n- b", "a: b: c", "\t", "%YAML 9.9", "---\n...\n---\na: b", "\x00", "é",
    "0o17", "0b1", "0x1F", "1__0", "+1", "1.5e", "=", "-", "?", "a" * 3000,
)
JSON = (
    "", "null", "[]", "3", '"text"', "true", "{", "[{}]", '{"files": []}', '{"format": 1}', "NaN",
    '{"format": 1, "files": {"state.json": 3}}',
    '{"format": 1, "files": {"../../x": {"bytes": 1}}}', '{"status": []}',
    '{"status": {"a": 1}, "env_step": "x"}', '{"metric": 3, "group": []}',
    '{"status": "finished", "env_step": null, "final_return": "x"}',
    '[{"name": [1]}, 3, {"name": 3}]', '{"normaliser": "x", "started": {}}',
    '{"status": "\\u001b[31m"}', "9" * 5000, "[" * 9999, "\x00",
    '{"status": "finished", "env_step": 1e400}', '{"env_step": NaN, "status": 1}',
)
CSV = (
    "", "\n", "env_step\n", "a,b\n1,2\n", "env_step,return\nx,y\n", "env_step,return\n1\n2,3,4\n",
    "env_step,return,episode\n1,nan,inf\n", "env_step,env_step\n1,2\n", ",,,\n,,,\n",
    "return\n1\n", "env_step,return\n" + "9" * 400 + ",1\n", 'env_step,return\n"1\n',
    "env_step,return\n-5,1e400\n", "\x1b[31m\n1\n", "env_step,event\n1,\x1b[31m\n",
    "task,run,env_step\na,b,1\n",
)
# fmt: on

FLAGS = [f"--{name.replace('_', '-')}" for name in Config().flat()]
OWN = {
    "train": ["--config", *FLAGS],
    "sweep": ["--plan", "--tasks", "--variants", "--seeds", "--engine", "--jobs", *FLAGS[3:]],
    "tasks": ["--group"],
    "variants": ["--json"],
    "compare": ["--runs", "--task", "--variant", "--sort"],
    "claims": ["--runs", "--figures"],
    "report": ["--runs", "--out", "--notebooks"],
    "figures": ["--runs", "--out", "--only", "-p", "--list"],
    "export": ["--runs", "--out", "--without"],
    "reproduce": ["--seeds", "--out", "--figures", "--jobs"],
}
"""Every command with the flags of which one may be wrong."""
REST = {
    "train": ["--task", "gym:Pendulum-v1", "--width", "4", "--batch-size", "8"],
    "sweep": ["--tasks", "gym:Pendulum-v1"],
    "export": ["--runs", ".", "--out", "exported"],
}
"""What makes the rest of the command line right, before it."""
SAFE = {
    "train": ["--dry-run"],
    "sweep": ["--list"],
    "reproduce": ["--task", "nope"],
    "figures": ["--list"],
}
"""What keeps it from training, measuring and drawing, after it."""


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder of its own for a case, as working directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def check(*argv: str) -> int:
    """Run a command; whatever comes, it must end as documented. Returns its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(argv)
    said = err.getvalue()
    assert code in CODES, (code, said)
    assert plain(out.getvalue()) == out.getvalue()
    assert plain(said) == said
    if code == 2:
        assert said.startswith("fog: ") and said.count("\n") == 1, said
        assert len(said) <= LINE + len("fog: \n")
    return code


words = st.one_of(st.sampled_from(NASTY), st.text(max_size=12), st.integers().map(str))


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """Flags with values, each written as one word, and now and then a word that is none.

    Drawn evenly from a seed: hypothesis itself likes to repeat what it has just drawn.
    """
    random = Random(draw(st.integers(0, 2**64)))
    command = random.choice(list(OWN))
    argv = []
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        value = random.choice(NASTY) if random.random() < 0.8 else draw(words)
        argv.append(f"{random.choice(OWN[command])}={value}")
    if random.random() < 0.1:
        argv.insert(random.randrange(len(argv) + 1), draw(words))
    return [command, *REST.get(command, []), *argv, *SAFE.get(command, [])]


def any_command_line(argv: list[str]) -> int:
    with workplace():
        return check(*(item for item in argv if item not in ("-h", "--help")))


values = st.one_of(
    st.sampled_from(YAML),
    st.integers().map(str),
    st.floats().map(str),
    st.text(max_size=20),
    st.sampled_from(NASTY),
)
KEYS = (
    *GROUPS,
    *Config().flat(),
    "runs",
    "tasks",
    "variants",
    "seeds",
    "settings",
    "name",
    "scale",
)


@st.composite
def configs(draw: st.DrawFn) -> str:
    """A good config with some of its lines broken, or something put together from parts."""
    if draw(st.integers(0, 4)) == 0:
        return draw(values)
    lines = to_yaml(tiny(Path("runs"))).splitlines()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        key, colon, _old = lines[at].partition(":")
        lines[at] = draw(st.one_of(st.just(f"{key}{colon} {draw(values)}"), values))
    return "\n".join(lines)


def any_config(text: str) -> int:
    with workplace() as home:
        (home / "a.yaml").write_text(text, encoding="utf-8", errors="surrogateescape")
        return check("train", "--config", "a.yaml", "--dry-run")


@st.composite
def plans(draw: st.DrawFn) -> str:
    lines = ["tasks: [gym:Pendulum-v1]", "variants: [sac, fog]", "seeds: 0-1", "scale: 0.02"]
    for _ in range(draw(st.integers(1, 3))):
        key, value = draw(st.sampled_from(KEYS)), draw(values)
        lines.append(
            draw(st.sampled_from((f"{key}: {value}", f"settings: {{{key}: {value}}}", value)))
        )
        if draw(st.booleans()):
            lines.append(f"runs:\n  - {key}: {value}\n  - {{}}")
    kept = draw(st.lists(st.sampled_from(lines), min_size=1, unique=True))
    return "\n".join(dict.fromkeys([*kept, *lines[4:]]))


def any_plan(text: str) -> int:
    with workplace() as home:
        (home / "a.yaml").write_text(text, encoding="utf-8", errors="surrogateescape")
        return check("sweep", "--plan", "a.yaml", "--list")


FILES = {
    "config.yaml": YAML,
    "manifest.json": JSON,
    "evals.csv": CSV,
    "train.csv": CSV,
    "events.csv": CSV,
}


@st.composite
def damages(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Files of a run, each with what has become of it; `DIR` is a folder in its place."""
    found = []
    for name in draw(st.lists(st.sampled_from(list(FILES)), min_size=1, max_size=3, unique=True)):
        what = st.one_of(st.sampled_from(FILES[name]), st.text(max_size=30), st.just("DIR"), values)
        found.append((name, draw(what)))
    return found


READERS = (
    ("compare",),
    ("compare", "--json"),
    ("claims",),
    ("export", "--out", "exported"),
)


def any_run_directory(case: tuple[list[tuple[str, str]], tuple[str, ...]]) -> int:
    damage, reader = case
    with workplace() as home:
        run = home / "runs" / "cartpole-swingup" / "sac" / "seed0"
        shutil.copytree(FIXTURE / "sac" / "seed0", run)
        for name, content in damage:
            (run / name).unlink()
            if content == "DIR":
                (run / name).mkdir()
            else:
                (run / name).write_text(content, encoding="utf-8", errors="surrogateescape")
        return check(reader[0], "--runs", "runs", *reader[1:])


CASES: dict[str, tuple[Any, Any, int, int]] = {
    "command line": (command_lines(), any_command_line, 60, 800),
    "config": (configs(), any_config, 40, 600),
    "plan": (plans(), any_plan, 30, 400),
    "run directory": (st.tuples(damages(), st.sampled_from(READERS)), any_run_directory, 20, 200),
}


def fuzz(kind: str, count: int) -> None:
    strategy, test, *_ = CASES[kind]
    checks = settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )

    def attempt(case: Any) -> None:
        test(case)

    checks(seed(2026)(given(strategy)(attempt)))()


@pytest.mark.parametrize("kind", CASES)
def test_a_fixed_few(kind: str) -> None:
    fuzz(kind, CASES[kind][2])


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
def test_two_thousand(kind: str) -> None:
    assert sum(count for *_, count in CASES.values()) == 2000
    fuzz(kind, CASES[kind][3])
