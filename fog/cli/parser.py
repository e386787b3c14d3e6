"""Argument parsing whose errors are one line, and config settings as typed flags."""

from __future__ import annotations

import argparse
import dataclasses
import os
import types
import typing
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

from fog.errors import UserError
from fog.settings.config import GROUPS, Config
from fog.settings.options import MOST, describe, hints, unknown
from fog.system.text import shown


class Parser(argparse.ArgumentParser):
    """argparse that raises `UserError` instead of printing its usage and exiting."""

    def __init__(self, command: str, summary: str, **options: Any) -> None:
        super().__init__(
            prog=f"fog {command}",
            description=summary,
            formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
                prog, max_help_position=32, width=100
            ),
            allow_abbrev=False,
            **options,
        )

    def error(self, message: str) -> NoReturn:
        """Raise the parser's message as a user error."""
        raise UserError(f"{message}; `{self.prog} --help` lists the options")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse `--flag=--`, which argparse turns into an empty list, then parse known flags."""
        for item in args or ():
            flag, _, value = item.partition("=")
            if value == "--" and flag.startswith("-"):
                self.error(f"argument {flag}: expected a value, got '--'")
        return super().parse_known_args(args, namespace)

    def parse(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse all of `argv`; a flag that does not exist is named with the nearest one."""
        namespace, rest = self.parse_known_args(argv)
        if rest:
            flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
            stray = next((item for item in rest if item.startswith("-")), rest[0])
            if not stray.startswith("-"):
                raise UserError(
                    f"unexpected argument {shown(stray)}; `{self.prog} --help` shows usage"
                )
            raise unknown("option", stray.partition("=")[0], flags)
        return namespace


def integer(text: str) -> int:
    """An integer as people write large ones: 100000, 100_000 or 1e5."""
    try:
        value = int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise ValueError(text) from None
        value = int(number)
    if abs(value) > MOST:
        raise ValueError(text)
    return value


def pathname(text: str) -> Path:
    """A file or folder that need not exist but has a valid path."""
    try:
        if not text.strip():
            raise ValueError("it is empty")
        os.stat(text)  # noqa: PTH116 - Path.exists hides some of what is wrong
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise argparse.ArgumentTypeError(f"not a valid path: {shown(text)}: {reason}") from None
    return Path(text)


def target(text: str) -> Path:
    """A file to write, new or regular: writing it anew would put a file in a device's place."""
    path = pathname(text)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise argparse.ArgumentTypeError(f"not a file: {shown(text)}: it is a device or a pipe")
    return path


_READERS: dict[Any, Any] = {int: integer, float: float, str: str}


def _reader(hint: Any) -> Any:
    if typing.get_origin(hint) is types.UnionType:
        inner = next(kind for kind in typing.get_args(hint) if kind is not type(None))
        return lambda text: None if text == "none" else _READERS[inner](text)
    return _READERS[hint]


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " ".join(str(item) for item in value) or "none"
    return "none" if value is None else str(value)


def add_settings(
    parser: argparse.ArgumentParser,
    defaults: Config,
    *,
    skip: Collection[str] = (),
    hidden: bool = False,
) -> None:
    """Add every setting of the config as a flag, with its resolved default in the help.

    The parsed namespace holds only flags that were given, so that a default is never mistaken for
    an explicit setting. `skip` names settings to leave out; `hidden` keeps all out of the help.
    """
    for name, cls in GROUPS.items():
        title = (cls.__doc__ or "").partition("\n")[0]
        group = parser if hidden else parser.add_argument_group(name, title)
        for item in dataclasses.fields(cls):
            if item.name in skip:
                continue
            hint, default = hints(cls)[item.name], getattr(getattr(defaults, name), item.name)
            text = f"{item.metadata['help']} [{_shown(default)}]".replace("%", "%%")
            flag = "--" + item.name.replace("_", "-")
            options: dict[str, Any] = {"default": argparse.SUPPRESS}
            options["help"] = argparse.SUPPRESS if hidden else text
            if hint is bool:
                options["action"] = argparse.BooleanOptionalAction
            elif typing.get_origin(hint) is tuple:
                options |= {"nargs": "*", "metavar": "X", "type": _items(typing.get_args(hint)[0])}
            elif typing.get_origin(hint) is Literal:
                options |= {"choices": typing.get_args(hint)}
            else:
                options |= {"type": _named(_reader(hint), hint), "metavar": "X"}
            group.add_argument(flag, **options)


def _named(read: Any, hint: Any) -> Any:
    """A reader whose error says what was expected and what it got."""

    def reader(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, OverflowError):
            raise argparse.ArgumentTypeError(
                f"expected {describe(hint)}, got {shown(text)}"
            ) from None

    return reader


def _items(hint: Any) -> Any:
    """Read list items given as `a b` or `a,b`; `none` is the empty list."""
    read = _named(_READERS[hint], hint)

    def reader(text: str) -> list[Any]:
        return [] if text == "none" else [read(part) for part in text.split(",") if part]

    return reader


def settings(namespace: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given on the command line, by bare name."""
    flat = Config().flat()
    given = {name: at for name, at in vars(namespace).items() if name in flat}
    return {
        name: tuple(item for part in at for item in part) if isinstance(at, list) else at
        for name, at in given.items()
    }
