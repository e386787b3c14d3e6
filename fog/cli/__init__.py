"""The `fog` command: finds the subcommand, and turns user errors into one line and an exit code.

Subcommands are imported only when called, because `fog --help` must not wait for torch. Other
packages add commands through the entry point group `fog.commands`.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from fog import __version__
from fog.settings.options import unknown
from fog.system import streams
from fog.system.children import safe_path
from fog.system.text import one_line

Command = Callable[[Sequence[str]], int]

BUILT_IN = {
    "doctor": ("fog.cli.doctor", "check what works on this machine: suites, GL, device, threads"),
    "tasks": ("fog.cli.listing", "list the paper's 41 tasks"),
    "variants": ("fog.cli.listing", "list the named agents and ablations"),
    "train": ("fog.cli.train", "train one agent, with probes"),
    "sweep": ("fog.cli.sweep", "train many agents: tasks x variants x seeds; resumable"),
}


def _plugins() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="fog.commands")}


def _usage() -> str:
    rows = [(name, summary) for name, (_, summary) in BUILT_IN.items()]
    for name, entry in sorted(_plugins().items()):
        rows.append((name, _summary(entry)))
    lines = "\n".join(f"  {name:<10} {summary}" for name, summary in rows)
    return (
        "usage: fog COMMAND [options]\n\n"
        "Train FoG, its ablations, the SAC family and the paper's opponents; look inside them.\n\n"
        f"commands:\n{lines}\n\n"
        "`fog COMMAND --help` explains a command. First steps:\n"
        "  fog doctor\n"
        "  fog train --task cartpole-swingup --variant fog --scale 0.02 --width 64\n"
    )


def _summary(entry: EntryPoint) -> str:
    """The first line of a plugin's docstring, read without running the plugin."""
    try:
        spec = importlib.util.find_spec(entry.module)
        assert spec is not None and spec.origin is not None
        text = ast.get_docstring(ast.parse(Path(spec.origin).read_text())) or ""
    except (ImportError, OSError, SyntaxError, AssertionError):
        text = ""
    line = text.partition("\n")[0].removeprefix(f"`fog {entry.name}`: ").rstrip(".")
    return line or f"from {entry.module}"


def _load(name: str) -> Command:
    if name in BUILT_IN:
        module = importlib.import_module(BUILT_IN[name][0])
        command: Command = getattr(module, name)
        return command
    plugins = _plugins()
    if name in plugins:
        plugin: Command = plugins[name].load()
        return plugin
    raise unknown("command", name, [*BUILT_IN, *plugins])


def main(argv: Sequence[str] | None = None) -> int:
    """Run the `fog` command and return its exit code.

    0 success, 1 not all of a sweep's runs finished, 2 bad input or a disk that is full (one line
    on standard error), 3 the run diverged, 75 another process is writing the run, 130 interrupted.
    A reader that leaves (`| head`) or a closed stream stops nothing and changes no exit code.
    """
    with safe_path(), streams.lasting() as output:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        if output.failure is not None:
            _complain(f"cannot write to standard output: {output.failure}")
            code = code or 2
    return code


def _run(arguments: list[str]) -> int:
    try:
        if not arguments or arguments[0] in {"-h", "--help", "help"}:
            print(_usage())
            return 0
        if arguments[0] in {"-V", "--version"}:
            print(f"fog {__version__}")
            return 0
        return _load(arguments[0])(arguments[1:])
    except SystemExit as end:
        # argparse, when it has shown its help.
        return end.code if isinstance(end.code, int) else 0
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except Exception as error:
        # Commands of other packages need not use `UserError`: an attribute `exit_code` marks a user
        # error.
        exit_code = getattr(error, "exit_code", None)
        if not isinstance(exit_code, int):
            raise
        _complain(str(error))
        return exit_code


def _complain(text: str) -> None:
    print(f"fog: {one_line(text)}", file=sys.stderr)
