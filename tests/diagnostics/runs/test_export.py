import json
import os
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import diagnostics
from diagnostics.commands.export import command
from diagnostics.errors import AnalysisError, RunsWarning
from diagnostics.runs.export import export
from diagnostics.runs.privacy import clean_command, clean_config, clean_text
from fog.records.run_directory import RunDirectory
from fog.settings import config_file
from tests.diagnostics.recorded import TASK, copy, mark

RUNS = Path(__file__).parents[2] / "fixtures" / "runs"
TABLES = ("critic_loss", "sample_counts", "dormancy", "features", "churn")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A run with the things that an export leaves behind, and one that has not ended."""
    home = tmp_path / "runs"
    shutil.copytree(RUNS / "cartpole-swingup" / "fog", home / "cartpole-swingup" / "fog")
    ended, running = (home / "cartpole-swingup" / "fog" / f"seed{seed}" for seed in (0, 1))
    (ended / "checkpoint").mkdir()
    (ended / "checkpoint" / "weights.npy").write_bytes(b"0" * 1000)
    (ended / ".lock").touch()
    manifest = json.loads((running / "manifest.json").read_text())
    (running / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    return home


def test_an_exported_run_reads_like_the_run(runs: Path, tmp_path: Path) -> None:
    done = export(runs, tmp_path / "kept")
    assert [path.name for path in done.runs] == ["seed0"]
    assert {path.name: why for path, why in done.left_out.items()} == {"seed1": "has not ended"}
    copy = done.runs[0]
    assert not (copy / "checkpoint").exists() and not (copy / ".lock").exists()
    assert done.nbytes == sum(f.stat().st_size for f in copy.rglob("*") if f.is_file())
    before, after = diagnostics.load(runs).select(seed=0), diagnostics.load(tmp_path / "kept")
    for name in TABLES:
        assert len(list((copy / "probes" / name).iterdir())) == 1
        was, now = (x.table(name).drop(columns="run") for x in (before, after))
        pd.testing.assert_frame_equal(was, now)
    pd.testing.assert_frame_equal(before.evals.drop(columns="run"), after.evals.drop(columns="run"))


def test_rounding_is_as_fine_as_promised_and_leaves_evaluations_alone(
    runs: Path, tmp_path: Path
) -> None:
    export(runs, tmp_path / "exact")
    export(runs, tmp_path / "rounded", rounded=True)
    exact, rounded = diagnostics.load(tmp_path / "exact"), diagnostics.load(tmp_path / "rounded")
    for column in ("activation", "gradient"):
        was = np.concatenate(list(exact.dormancy[column]))
        now = np.concatenate(list(rounded.dormancy[column]))
        assert not np.array_equal(was, now)
        np.testing.assert_allclose(now, was, rtol=2.0**-6)
    assert not exact.critic_loss["mean"].equals(rounded.critic_loss["mean"])
    was, now = (x.critic_loss.drop(columns="run") for x in (exact, rounded))
    pd.testing.assert_frame_equal(was, now, rtol=2.0**-13)
    pd.testing.assert_frame_equal(
        exact.evals.drop(columns="run"), rounded.evals.drop(columns="run"), check_exact=True
    )
    was, now = exact.train.drop(columns="run"), rounded.train.drop(columns="run")
    assert not was.equals(now)
    pd.testing.assert_frame_equal(was, now, rtol=5e-4)
    sizes = [
        sum(f.stat().st_size for f in (tmp_path / name).rglob("dormancy/*"))
        for name in ("exact", "rounded")
    ]
    assert sizes[1] < 0.6 * sizes[0]


def test_the_copy_of_a_copy_says_all_that_is_missing(runs: Path, tmp_path: Path) -> None:
    export(runs, tmp_path / "small", rounded=True, without=["features"], last=["churn"])
    export(tmp_path / "small", tmp_path / "smaller", without=["dormancy"], last=["sample_counts"])
    marker = json.loads((tmp_path / "smaller" / SEED / "export.json").read_text())
    assert marker["rounded"] and marker["without"] == ["dormancy", "features"]
    assert marker["last"] == ["churn", "sample_counts"]


def test_the_last_measurement_alone_is_kept_of_tables_that_are_named(
    runs: Path, tmp_path: Path
) -> None:
    done = export(runs, tmp_path / "kept", last=["sample_counts"])
    before, after = diagnostics.load(runs).select(seed=0), diagnostics.load(tmp_path / "kept")
    was, now = (x.sample_counts.drop(columns="run") for x in (before, after))
    last = was["env_step"] == was["env_step"].max()
    assert 0 < last.sum() < len(was)
    pd.testing.assert_frame_equal(was[last].reset_index(drop=True), now)
    was, now = (x.critic_loss.drop(columns="run") for x in (before, after))
    pd.testing.assert_frame_equal(was, now)
    assert not done.damaged and after.problems.empty


def test_a_second_export_brings_the_copies_up_to_date(runs: Path, tmp_path: Path) -> None:
    export(runs, tmp_path / "kept")
    manifest = runs / "cartpole-swingup" / "fog" / "seed1" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"running"', '"finished"'))
    again = export(runs, tmp_path / "kept", without=["features"])
    assert len(again.runs) == 2 and not again.left_out
    assert diagnostics.load(tmp_path / "kept").features.empty


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "nowhere"], "is not a directory"),
        (["--runs", ".", "--out", "inside"], "is inside"),
        (
            ["--runs", "runs/cartpole-swingup/fog/seed0", "--out", "runs"],
            "it contains runs/cartpole",
        ),
        (["--out", "runs"], "is inside"),
        (["--without", "dormant"], "did you mean 'dormancy'"),
        (["--last", "dormant"], "did you mean 'dormancy'"),
        (["--last", "dormancy", "--without", "dormancy"], "choose one"),
    ],
)
def test_mistakes_are_named(
    runs: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(runs.parent)
    defaults = ["--runs", "runs", "--out", "kept"]
    with pytest.raises(AnalysisError, match=message):
        command([*defaults, *arguments])
    assert not Path("kept").exists()


def test_the_command_says_what_it_did(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["--runs", str(runs), "--out", str(tmp_path / "kept")]) == 0
    said = capsys.readouterr().out
    assert "has not ended" in said and "1 runs" in said


SEED = Path("cartpole-swingup") / "fog" / "seed0"


def everything(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("single", [True, False])
def test_a_folder_with_other_files_is_refused_and_untouched(
    runs: Path, tmp_path: Path, single: bool
) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "thesis.tex").write_text("years of work")
    before = everything(tmp_path)
    with pytest.raises(AnalysisError, match="holds other files and no earlier export"):
        export(runs / SEED if single else runs, keep)
    assert everything(tmp_path) == before


def test_what_lies_beside_an_earlier_export_stays(runs: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    export(runs, kept)
    (kept / "README.md").write_text("about these runs")
    assert len(export(runs, kept).runs) == 1
    assert (kept / "README.md").read_text() == "about these runs"
    # Inside of a copy it would go with the copy.
    note = kept / SEED / "notes.txt"
    note.write_text("look at step 300")
    before = everything(tmp_path)
    with pytest.raises(AnalysisError, match=r"also holds notes.txt, which no export wrote"):
        export(runs, kept)
    assert everything(tmp_path) == before


def test_only_exports_of_the_same_run_are_replaced(runs: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    export(runs / SEED, kept)
    assert (kept / "evals.csv").is_file()
    assert len(export(runs / SEED, kept, rounded=True).runs) == 1
    config = runs / SEED / "config.yaml"
    config.write_text(config.read_text().replace("width: 8", "width: 16"))
    before = everything(tmp_path)
    with pytest.raises(AnalysisError, match="export of a run with other settings"):
        export(runs / SEED, kept)
    # A real run in the way, such as one that was trained there.
    shutil.rmtree(kept)
    shutil.copytree(runs / SEED, kept / SEED)
    export(RUNS / "cartpole-swingup" / "sac", kept / "sac")
    before = everything(tmp_path)
    with pytest.raises(AnalysisError, match=r"not marked as an earlier export \(no export.json\)"):
        export(runs, kept)
    assert everything(tmp_path) == before


def test_no_way_out_through_a_symbolic_link(runs: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    export(RUNS / "cartpole-swingup" / "sac", kept / "sac")
    (kept / "cartpole-swingup").symlink_to(runs / "cartpole-swingup")
    before = everything(runs)
    with pytest.raises(AnalysisError, match="symbolic link"):
        export(runs, kept)
    assert everything(runs) == before


def test_a_run_that_is_being_written_is_left_out(runs: Path, tmp_path: Path) -> None:
    writer = RunDirectory(runs / SEED)
    writer.lock()
    done = export(runs, tmp_path / "kept")
    assert done.left_out[runs / SEED] == "is being written" and not done.runs
    writer.unlock()
    assert len(export(runs, tmp_path / "kept").runs) == 1


def test_no_run_is_resumed_while_it_is_copied(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from diagnostics.runs import export as module

    seen: list[bool] = []
    join = module._join

    def joined(*arguments: object) -> list[str]:
        handle = os.open(runs / SEED / ".lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            module_flock(handle)
        os.close(handle)
        seen.append(True)
        return join(*arguments)

    monkeypatch.setattr(module, "_join", joined)
    export(runs, tmp_path / "kept")
    assert seen


def module_flock(handle: int) -> None:
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize("moment", ["build", "place"])
def test_a_failed_export_keeps_the_earlier_copy(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    from diagnostics.runs import export as module
    from diagnostics.runs import export_folder

    kept = tmp_path / "kept"
    export(runs, kept)
    before = everything(kept)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if moment == "build":
        monkeypatch.setattr(module, "_join", fail)
    else:
        monkeypatch.setattr(export_folder, "place", fail)
    with pytest.raises(AnalysisError, match=r"cannot write to .*No space left"):
        command(["--runs", str(runs), "--out", str(kept)])
    assert {path: everything(kept).get(path) for path in before} == before
    monkeypatch.undo()
    assert len(export(runs, kept).runs) == 1
    assert set(everything(kept)) == set(before)


@pytest.mark.parametrize("file", ["train.csv", "probes/dormancy/000000000101-00.parquet"])
def test_what_could_not_be_copied_whole_is_said(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    kept = tmp_path / "kept"
    broken = runs / SEED / file
    if broken.suffix == ".parquet":
        pq.write_table(pq.read_table(broken), broken, write_page_checksum=True)
    shutil.copytree(runs / SEED, runs / "cartpole-swingup" / "fog" / "seed7")
    export(runs, kept)
    good = everything(kept)
    raw = bytearray(broken.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    broken.write_bytes(raw)
    for path in (runs / SEED, runs / SEED.with_name("seed7")):
        manifest = path / "manifest.json"
        manifest.write_text(manifest.read_text().replace('"env_step": 800', '"env_step": 801'))
    assert command(["--runs", str(runs), "--out", str(kept)]) == 1
    said = capsys.readouterr().out
    assert f"incomplete, {runs / SEED}: {file}" in said and "1 runs" in said
    # The good copy of before is worth more; that of the other run is up to date.
    now = everything(kept)
    assert [path.parent.name for path in now if now[path] != good[path]] == ["seed7"]
    # A first copy has what can be read.
    assert command(["--runs", str(runs), "--out", str(tmp_path / "new"), "--rounded"]) == 1
    assert len(diagnostics.load(tmp_path / "new")) == 2


def test_exports_say_nothing_of_machine_and_user(runs: Path, tmp_path: Path) -> None:
    manifest_path, config_path = (runs / SEED / name for name in ("manifest.json", "config.yaml"))
    manifest = json.loads(manifest_path.read_text())
    manifest["hardware"]["host"] = "zoe-laptop"
    manifest["command"] = [
        "/home/zoe/.venv/bin/fog",
        "train",
        "--out=/home/zoe/my runs",
        "--seed=0",
    ]
    manifest["reason"] = "OSError: '/home/zoe/my runs/x' on zoe-laptop"
    manifest_path.write_text(json.dumps(manifest))
    text = config_path.read_text()
    out = next(line for line in text.splitlines() if line.startswith("  out:"))
    config_path.write_text(text.replace(out, "  out: /home/zoe/my runs"))
    export(runs, tmp_path / "clean")
    export(runs, tmp_path / "host", keep_host=True)
    assert everything(tmp_path / "host")[tmp_path / "host" / SEED / "config.yaml"] == (
        config_path.read_bytes()
    )
    assert "zoe-laptop" in (tmp_path / "host" / SEED / "manifest.json").read_text()
    for content in everything(tmp_path / "clean").values():
        assert b"zoe" not in content
    cleaned = json.loads((tmp_path / "clean" / SEED / "manifest.json").read_text())
    assert cleaned["command"] == ["fog", "train", "--out=my runs", "--seed=0"]
    assert cleaned["hardware"] == {k: v for k, v in manifest["hardware"].items() if k != "host"}
    for name in ("versions", "git_commit", "started", "ended", "final_return", "probes"):
        assert cleaned[name] == manifest[name]
    config = config_file.read_settings(tmp_path / "clean" / SEED / "config.yaml")
    assert config == config_file.read_settings(config_path) | {"out": "my runs"}


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("see /home/ada/x.csv: bad", "see x.csv: bad"),
        ("'/home/a b/c d.csv' is bad", "'c d.csv' is bad"),
        ("at ~ada/y, ../../root/z", "at y, z"),
        ("file:///root/x", "x"),
        ("https://arxiv.org/abs/1 and/or 1/2 a / b runs/x", None),
    ],
)
def test_absolute_paths_keep_their_last_part(text: str, cleaned: str | None) -> None:
    assert clean_text(text) == (text if cleaned is None else cleaned)


def test_command_lines_and_settings_stay_what_they_were_but_for_paths() -> None:
    words = ["/tmp/runner/fog/__main__.py", "train", "--probes=a:p=/root/x", "~/plan.yaml"]
    assert clean_command(words) == ["fog", "train", "--probes=a:p=x", "plan.yaml"]
    text = (RUNS / SEED / "config.yaml").read_text()
    assert clean_config(text) == text.replace(*_out(text))


def _out(text: str) -> tuple[str, str]:
    line = next(line for line in text.splitlines() if line.startswith("  out:"))
    return line, f"  out: {Path(line.partition(': ')[2]).name}"


@pytest.mark.parametrize("rounded", [False, True])
def test_an_old_table_stays_old_in_its_copy(tmp_path: Path, rounded: bool) -> None:
    """Its gradient scores are not copied, which is said, and the copy cannot pass for a new one."""
    run = copy(tmp_path / "runs")
    mark(run / "probes" / "dormancy", "1")
    done = export(tmp_path / "runs", tmp_path / "out", rounded=rounded)
    assert any("dormancy has schema version 1: gradient is not read" in x for x in done.damaged)
    with pytest.warns(RunsWarning, match="schema version 1"):
        scores = diagnostics.load(tmp_path / "out").dormancy
    assert scores["gradient"].isna().all() and scores["activation"].notna().all()


def test_a_run_that_lost_its_settings_keeps_its_copy_and_stops_no_other(tmp_path: Path) -> None:
    source, out = tmp_path / "runs", tmp_path / "kept"
    copy(source)
    export(source, out)
    (source / TASK / "fog" / "seed0" / "config.yaml").unlink()
    other = copy(source, "sac")
    done = export(source, out)
    assert done.runs == [out / other.relative_to(source)]
    assert any("the earlier copy is kept" in line for line in done.damaged)
    assert (out / TASK / "fog" / "seed0" / "config.yaml").is_file()


def test_a_killed_export_is_taken_up_again(tmp_path: Path) -> None:
    source, out = tmp_path / "runs", tmp_path / "kept"
    copy(source)
    export(source, out)
    run = out / TASK / "fog" / "seed0"
    # A disk without room, or a kill, before there was a single copy.
    begun = tmp_path / "begun" / TASK / "fog" / ".seed0.partial"
    begun.mkdir(parents=True)
    assert len(export(source, tmp_path / "begun").runs) == 1
    # Killed while it wrote the marker of a new copy.
    partial = run.with_name(".seed0.partial")
    partial.mkdir()
    (partial / "export.json").touch()
    assert len(export(source, out).runs) == 1
    assert not partial.exists()
    # Killed between the two renames, and the source is damaged by now.
    run.rename(run.with_name(".seed0.earlier"))
    (source / TASK / "fog" / "seed0" / "evals.csv").write_text("env_step\nx\n")
    done = export(source, out)
    assert not done.runs and any("the earlier copy is kept" in line for line in done.damaged)
    assert len(diagnostics.load(out).evals) == 16
