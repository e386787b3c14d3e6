"""A folder for compiled code that no other user can write, because its contents are run.

By default it is where torch keeps its own: a folder of a known name in /tmp, which another user of
the machine may have made first. So owner and permissions are checked before anything is loaded.
"""

from __future__ import annotations

import getpass
import os
import stat
import tempfile
import warnings
from pathlib import Path

from fog.errors import UserError

_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """The folder of our compiled code, private, within the one that torch will use as well.

    That is TORCHINDUCTOR_CACHE_DIR, by default torch's folder in /tmp. If others can write there,
    a warning says so, and both go to the user's cache directory instead.
    """
    root = Path(os.environ.get(_VARIABLE) or _default()).absolute()
    if problem := _problem(root):
        spare = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fog" / "torch"
        if worse := _problem(spare):
            raise UserError(
                f"no private folder for compiled code: {worse}; set {_VARIABLE} to a folder that "
                "only you can write, or set compile to off"
            )
        warnings.warn(f"{problem}: compiled code goes to {spare} instead", stacklevel=2)
        root = spare
    os.environ[_VARIABLE] = str(root)
    return root / "fog"


def _default() -> Path:
    """Torch's own choice. Not asked of torch, which makes the folder when its compiler is imported.

    Made by torch, it would have the permissions that the umask leaves.
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid_{os.geteuid()}"
    return Path(tempfile.gettempdir()) / f"torchinductor_{user}"


def _problem(root: Path) -> str | None:
    """Why compiled code cannot be kept in `root`, which is made if need be; None if it can."""
    for folder in (root, root / "fog"):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            reason = distrust(folder)
        except OSError as error:
            reason = error.strerror or str(error)
        if reason:
            return f"{folder}: {reason}"
    return None


def distrust(path: Path) -> str | None:
    """Why the contents of `path` must not be run: another user could have written them."""
    status = path.stat(follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        return "it is a link"
    if status.st_uid != os.geteuid():
        return "it belongs to another user"
    if status.st_mode & _OTHERS_WRITE:
        return "others can write to it (chmod go-w)"
    return None


def seal(path: Path) -> None:
    """Let no other user write a file, whatever the umask."""
    path.chmod(path.stat().st_mode & ~_OTHERS_WRITE)
