"""Runs notebooks through papermill: one after another, on the interpreter that runs this.

Executed copies are written beside the figures, and `notebooks.json` records how each went. A
notebook that fails does not stop the others.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from diagnostics.report.notebooks import Notebook

INDEX = "notebooks.json"
_KERNEL = "python3"


@dataclass(frozen=True)
class Outcome:
    """How the execution of one notebook went."""

    name: str
    notebook: str
    """The executed copy, beside the figures."""
    parameters: Mapping[str, Any]
    seconds: float
    error: str | None
    """What stopped it, in one line; None if nothing did."""


def execute_all(
    notebooks: Sequence[Notebook],
    out: Path,
    parameters: Mapping[str, Mapping[str, Any]],
    *,
    started: Callable[[int, Notebook], None] = lambda position, notebook: None,
    ended: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Execute notebooks and keep the executed copies in `out`.

    Args:
        notebooks: what to run, in this order.
        out: directory for the executed copies and the index; created if needed.
        parameters: values of each notebook's parameters, by its name.
        started: called with each notebook and its position before it runs.
        ended: called with each outcome.
    """
    out.mkdir(parents=True, exist_ok=True)
    outcomes = []
    with _pinned_kernel():
        for position, notebook in enumerate(notebooks):
            started(position, notebook)
            outcome = _execute(notebook, out, parameters.get(notebook.name, {}))
            outcomes.append(outcome)
            ended(outcome)
    _write_index(out / INDEX, outcomes)
    return outcomes


def _execute(notebook: Notebook, out: Path, parameters: Mapping[str, Any]) -> Outcome:
    # Imported here: it takes a second, and mistakes should be reported before.
    import papermill

    copy = out / f"{notebook.name}.ipynb"
    began = time.monotonic()
    error = None
    try:
        papermill.execute_notebook(
            str(notebook.path),
            str(copy),
            parameters=dict(parameters),
            kernel_name=_KERNEL,
            progress_bar=False,
            cwd=str(Path.cwd()),
            config=_kernel_config(),
        )
    except papermill.PapermillExecutionError as failure:
        error = _one_line(f"{failure.ename}: {failure.evalue} (cell {failure.cell_index + 1})")
    except Exception as failure:
        # A kernel that died, a disk that is full: the next notebook may still work.
        error = _one_line(f"{type(failure).__name__}: {failure}")
    seconds = round(time.monotonic() - began, 1)
    return Outcome(notebook.name, copy.name, dict(parameters), seconds, error)


@contextmanager
def _pinned_kernel() -> Iterator[None]:
    """A `python3` kernel that is the running interpreter, whatever kernels are installed.

    The user's IPython profile is left out as well: its startup files could change results.
    """
    home = Path(tempfile.mkdtemp(prefix="fog-kernel-"))
    # Nor does a kernel import from the folder it works in: -P for Python, the flag for IPython.
    launcher = ("-P", "-m", "ipykernel_launcher", "--InteractiveShellApp.ignore_cwd=True")
    spec = {
        "argv": [sys.executable, *launcher, "-f", "{connection_file}"],
        "display_name": "Python 3",
        "language": "python",
        "env": {"IPYTHONDIR": str(home / "ipython"), "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
    }
    directory = home / "kernels" / _KERNEL
    directory.mkdir(parents=True)
    (directory / "kernel.json").write_text(json.dumps(spec))
    names = ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR")
    before = {name: os.environ[name] for name in names if name in os.environ}
    paths = [str(home), *([before["JUPYTER_PATH"]] if "JUPYTER_PATH" in before else [])]
    # Connection files are in the runtime directory, and a socket's path must be short.
    os.environ |= {"JUPYTER_PATH": os.pathsep.join(paths), "JUPYTER_RUNTIME_DIR": str(home)}
    try:
        yield
    finally:
        for name in names:
            del os.environ[name]
        os.environ |= before
        shutil.rmtree(home, ignore_errors=True)


def _kernel_config() -> Any:
    """Files in place of TCP ports, where the system can: ports of parallel calls may collide."""
    from traitlets.config import Config

    transport = "ipc" if os.name == "posix" else "tcp"
    return Config({"ConnectionFileMixin": {"transport": transport}})


def read_index(folder: Path) -> dict[str, dict[str, Any]]:
    """What `execute_all` noted about each notebook of a folder, by name; entries that fit only."""
    try:
        entries = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            found[entry["name"]] = entry
    return found


def _write_index(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Replace the entries of these notebooks in the index, keeping those of earlier calls."""
    entries = read_index(path.parent)
    entries |= {outcome.name: asdict(outcome) for outcome in outcomes}
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps([entries[name] for name in sorted(entries)], indent=1) + "\n")
    partial.replace(path)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:297] + "..."
