"""`fog train`: from flags to a run directory."""

from __future__ import annotations

import argparse
import errno
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fog.cli.parser import Parser, add_settings, pathname, settings
from fog.errors import ConfigError, UserError
from fog.settings import config_file, variants
from fog.settings.config import Config
from fog.system.text import plain, shown

_SUMMARY = """Train one agent on one task, with optional probes, into its own run directory.

Settings come from the task, the variant and the scale, then --config, then the flags below. Flags
are taken as given, not scaled. Values in brackets are those the run would use."""

EXIT_CODES = {"finished": 0, "diverged": 3, "interrupted": 130}


def _parser(defaults: Config) -> Parser:
    parser = Parser("train", _SUMMARY, usage="fog train --task T [--variant V] [options]")
    actions = parser.add_argument_group("actions")
    actions.add_argument(
        "--config", metavar="FILE", type=pathname, help="settings from a YAML file"
    )
    actions.add_argument("--resume", action="store_true", help="continue an interrupted run")
    actions.add_argument("--dry-run", action="store_true", help="show what would run, then exit")
    add_settings(parser, defaults)
    return parser


def configure(argv: Sequence[str]) -> tuple[Config, argparse.Namespace]:
    """The config and the actions that a command line asks for."""
    wants_help = any(item in ("-h", "--help") for item in argv)
    plain = [item for item in argv if item not in ("-h", "--help")]
    first, _ = _parser(Config()).parse_known_args(plain)
    filed = config_file.read_settings(first.config) if first.config else {}
    given = settings(first)
    for name in ("task", "variant", "scale"):
        if name in filed and given.get(name, filed[name]) != filed[name]:
            raise ConfigError(
                f"{name}: --{name} {given[name]} contradicts {first.config}, which says "
                f"{shown(filed[name])}; change the file or drop the flag"
            )
    wishes: dict[str, Any] = filed | given
    if "task" not in wishes and not wants_help:
        raise ConfigError("no task given: add --task, for example --task cartpole-swingup")
    named = {name: wishes.pop(name, getattr(Config().run, name)) for name in _NAMED}
    if wants_help:
        _parser(variants.resolve(**named)).print_help()
        raise SystemExit(0)
    _parser(Config()).parse(argv)
    return variants.resolve(**named, **wishes), first


_NAMED = ("task", "variant", "scale")


def train(argv: Sequence[str]) -> int:
    """Train, resume, or show what would be trained."""
    config, actions = configure(argv)
    from fog.probing import registry

    registry.chosen(config.run.probes)
    if actions.dry_run:
        from fog.cli.dryrun import describe

        print(describe(config))
        return 0
    from fog.training import run as training

    try:
        run = training.train(config, resume=actions.resume, quiet=False)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UserError(f"the disk is full, the last checkpoint is kept: {error}") from None
    except MemoryError as error:
        raise UserError(
            f"not enough memory: {error}; lower --capacity, or keep the buffer on disk with "
            "--storage memmap"
        ) from None
    _conclude(run.status, run.directory, run.final_return, argv)
    return EXIT_CODES[run.status]


def _say(line: str) -> None:
    print(plain(line), file=sys.stderr)


def _conclude(status: str, directory: Path, final: float | None, argv: Sequence[str]) -> None:
    shown = "none" if final is None else f"{final:.1f}"
    if status == "finished":
        _say(f"Finished. Last evaluation return {shown}. Everything is in {directory}")
    elif status == "diverged":
        _say(f"Diverged: see {directory / 'events.csv'}; the last finite checkpoint is kept")
    else:
        resume = [] if "--resume" in argv else ["--resume"]
        command = shlex.join(["fog", "train", *argv, *resume])
        _say(f"Interrupted; everything is saved. Continue with: {command}")
