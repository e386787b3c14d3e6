"""Compiled code is run, so it is loaded only from where nobody else can write."""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path

import pytest

from fog.agent import compile_cache
from fog.errors import UserError
from fog.fast.kernels import build
from fog.system import code_cache
from fog.system.code_cache import cache_folder, distrust
from tests.fog.fast.test_kernels import needs_compiler


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder that another user could have made; the user's own lies beside it."""
    folder = tmp_path / "torchinductor"
    folder.mkdir()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return folder


def test_a_new_folder_is_private_whatever_the_umask(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared.rmdir()
    before = os.umask(0)
    try:
        assert cache_folder() == shared / "fog"
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o777 for path in (shared, shared / "fog")] == [0o700, 0o700]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
@pytest.mark.parametrize("inner", [False, True])
def test_a_folder_that_others_can_write_is_not_used(shared: Path, mode: int, inner: bool) -> None:
    folder = shared / "fog" if inner else shared
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)
    with pytest.warns(UserWarning, match=r"others can write to it.*goes to"):
        found = cache_folder()
    assert found.parent.parent.parent == shared.parent / "home"
    # torch's own compiled code goes with it, and a second look finds nothing to warn of.
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(found.parent)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache_folder() == found


def test_a_folder_of_another_user_is_not_used(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: shared.stat().st_uid + 1)
    with pytest.raises(UserError, match=r"no private folder for compiled code.*another user"):
        cache_folder()
    with pytest.raises(build.BuildError, match="no private folder"):
        build.library()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_given_away_is_not_used(shared: Path) -> None:
    os.chown(shared, 12345, 12345)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert cache_folder().is_relative_to(shared.parent / "home")


def test_a_link_into_a_folder_of_ours_is_not_followed(shared: Path, tmp_path: Path) -> None:
    shared.rmdir()
    (tmp_path / "elsewhere").mkdir()
    shared.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(UserWarning, match="it is a link"):
        cache_folder()


class _Code:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("ran",)


def test_a_compiled_update_that_others_can_write_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "update-planted"
    path.write_bytes(pickle.dumps(_Code()))
    path.chmod(0o666)
    with pytest.warns(UserWarning, match="others can write to it"):
        assert compile_cache._load(path) is None
    assert not (tmp_path / "ran").exists()


def test_what_we_write_is_ours_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with compile_cache._written(tmp_path / "update") as new:
            Path(new).touch()
    finally:
        os.umask(before)
    assert distrust(tmp_path / "update") is None


@needs_compiler
def test_a_library_that_others_can_write_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Path] = []

    def planted(compiler: str, path: Path) -> None:
        built.append(path)
        path.write_bytes(b"planted")
        path.chmod(0o666)

    monkeypatch.setattr(build, "_build", planted)
    build.library(tmp_path)
    build.library(tmp_path)
    assert len(built) == 2


def test_the_folder_is_the_one_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    assert code_cache._default() == Path(default_cache_dir())
