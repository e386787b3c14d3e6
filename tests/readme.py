"""The README's commands, one after the other: `python -m tests.readme FOLDER` runs and times them.

`FOLDER` stands for a fresh clone. The commands are those of the README as they are; the tests run
them smaller, by the replacements in `SMALLER`.
"""

from __future__ import annotations

import os
import re
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)

SMALLER = {
    "--scale 0.01 --width 32": "--scale 0.002 --width 8 --batch-size 8 --eval-episodes 1 "
    "--eval-every 100 --window-steps 100",
    "scale=0.01, width=32": "scale=0.002, width=8, batch_size=8, eval_episodes=1, "
    "eval_every=100, window_steps=100",
    # No GPU: the settings are resolved and shown, and nothing is trained.
    "--device cuda": "--dry-run",
}


def commands(*, small: bool) -> Iterator[tuple[str, list[str]]]:
    """What the README says, and what to run; without `make`, whose targets have their own tests."""
    text = (ROOT / "README.md").read_text()
    for language, block in BLOCK.findall(text):
        if language == "python":
            yield "Python", [".venv/bin/python", "-c", shrunk(block) if small else block]
            continue
        for line in block.splitlines():
            told = line.partition(" #")[0].strip()
            if told and not told.startswith(("#", "make ")):
                if "--device cuda" in told and not small:
                    continue
                yield told, shlex.split(shrunk(told) if small else told)


def shrunk(text: str) -> str:
    """The same at a small size."""
    for usual, smaller in SMALLER.items():
        text = text.replace(usual, smaller)
    return text


def clone(folder: Path) -> Path:
    """What the commands need of a fresh clone: the environment and the committed results."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "results").symlink_to(ROOT / "results")
    return folder


def main(folder: Path) -> int:
    """Run all in `folder`; print wall-clock and processor seconds of each."""
    clone(folder)
    for told, command in commands(small=False):
        began, used = time.monotonic(), _processor()
        done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL)
        spent = f"{time.monotonic() - began:6.0f} s, processor {_processor() - used:6.0f} s"
        sys.stdout.write(f"{spent}, exit {done.returncode}: {told}\n")
        sys.stdout.flush()
        if done.returncode:
            return 1
    return 0


def _processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main(Path(sys.argv[1])))
