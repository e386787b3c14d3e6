"""Jupyter kernels that can run side by side, and do not depend on what is installed."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jupyter_core

KERNEL = "python3"
_LONGEST = 90
"""Of the folder of sockets: a socket's path may have 103 bytes, and ours are named `/kernel-1`."""


@contextmanager
def pinned_kernel() -> Iterator[dict[str, Any]]:
    """A `python3` kernel that is the running interpreter, whatever kernels are installed.

    The user's IPython profile is left out as well: its startup files could change results.

    Yields:
        Options for papermill. Kernels are reached through sockets in a folder of their own, where
        the system has such: two processes that choose TCP ports at once can choose the same.
    """
    home = Path(tempfile.mkdtemp(prefix="fog-", dir=_short_folder()))
    # Nor does a kernel import from the folder it works in: -P for Python, the flag for IPython.
    # A kernel that is busy when it is asked to stop is interrupted, and calls that an error in the
    # middle of our progress line; errors of cells come through papermill.
    launcher = (
        *("-P", "-m", "ipykernel_launcher", "--InteractiveShellApp.ignore_cwd=True"),
        "--IPKernelApp.log_level=CRITICAL",
    )
    spec = {
        "argv": [sys.executable, *launcher, "-f", "{connection_file}"],
        "display_name": "Python 3",
        "language": "python",
        "env": {"IPYTHONDIR": str(home / "ipython"), "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
    }
    directory = home / "kernels" / KERNEL
    directory.mkdir(parents=True)
    (directory / "kernel.json").write_text(json.dumps(spec))
    names = ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR")
    before = {name: os.environ[name] for name in names if name in os.environ}
    # Templates of pages are looked for in this environment, which may have borrowed its packages.
    lender = Path(jupyter_core.__file__).parents[4] / "share" / "jupyter"
    paths = [
        str(home),
        *([before["JUPYTER_PATH"]] if "JUPYTER_PATH" in before else []),
        str(lender),
    ]
    os.environ |= {"JUPYTER_PATH": os.pathsep.join(paths), "JUPYTER_RUNTIME_DIR": str(home)}
    try:
        yield {"kernel_name": KERNEL, "config": _config(home)}
    finally:
        for name in names:
            del os.environ[name]
        os.environ |= before
        shutil.rmtree(home, ignore_errors=True)


def _short_folder() -> str | None:
    """None for the folder of temporary files, or another one if a socket's path were too long."""
    usual = tempfile.gettempdir()
    short = os.name != "posix" or len(os.fsencode(usual)) + len("/fog-12345678") <= _LONGEST
    return None if short else "/tmp"


def _config(home: Path) -> Any:
    from traitlets.config import Config

    if os.name != "posix":
        return Config()
    # Without `ip` the sockets are `kernel-ipc-1` and so on in the working directory, where those of
    # another process already are.
    return Config({"ConnectionFileMixin": {"transport": "ipc", "ip": str(home / "kernel")}})
