from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import KernelManager

from diagnostics.errors import AnalysisError
from diagnostics.report import notebooks
from diagnostics.report.kernels import pinned_kernel
from diagnostics.report.notebooks import Notebook, assign, available, choose
from fog.cli import main
from tests.diagnostics.recorded import FIXTURE


def write_notebook(path: Path, parameters: str, code: str) -> Path:
    cell = nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})
    book = nbformat.v4.new_notebook(cells=[cell, nbformat.v4.new_code_cell(code)])
    # A kernel that exists nowhere: the runner must not rely on it.
    book.metadata["kernelspec"] = {"name": "nowhere", "display_name": "?", "language": "python"}
    nbformat.write(book, path)
    return path


@pytest.fixture
def book(tmp_path: Path) -> Notebook:
    text = (
        'n = 10  # how many\ntaus = [0.1]\nname: str = "x"\nflag = True\nfree = None\nout = "."\n'
    )
    return Notebook.open(write_notebook(tmp_path / "book.ipynb", text, "pass"))


def test_parameters_are_read_from_the_tagged_cell(book: Notebook) -> None:
    assert book.parameters == {
        "n": 10,
        "taus": [0.1],
        "name": "x",
        "flag": True,
        "free": None,
        "out": ".",
    }


def test_values_get_the_type_of_the_default(book: Notebook) -> None:
    given = {"n": "1e3", "taus": "[1, 2]", "name": "12", "flag": "False", "free": "abc"}
    assert assign([book], given)["book"] == {
        "n": 1000.0,
        "taus": [1, 2],
        "name": "12",
        "flag": False,
        "free": "abc",
    }


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tuas": "[1]"}, "unknown notebook parameter 'tuas': did you mean 'taus'?"),
        ({"n": "many"}, "expected something like 10, got 'many'"),
        ({"n": "true"}, "expected something like 10"),
        ({"taus": "0.1"}, "expected something like [0.1], got '0.1'"),
        ({"flag": "1"}, "expected something like True"),
    ],
)
def test_mistaken_parameters(book: Notebook, given: dict[str, str], said: str) -> None:
    with pytest.raises(AnalysisError) as error:
        assign([book], given)
    assert said in str(error.value)


def test_a_parameter_goes_to_the_notebooks_that_have_it(tmp_path: Path, book: Notebook) -> None:
    other = Notebook.open(write_notebook(tmp_path / "other.ipynb", "m = 1", "pass"))
    assert assign([book, other], {"m": "2"}) == {"book": {}, "other": {"m": 2}}


def test_every_notebook_of_the_project_has_its_parameters_and_an_out() -> None:
    for notebook in choose([]):
        assert "out" in notebook.parameters, notebook.name
    assert {"theorem_1", "theorem_2", "sample_counts"} <= set(available())


def test_notebooks_are_found_in_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notebooks, "_HOMES", (tmp_path / "checkout", tmp_path))
    write_notebook(tmp_path / "mine.ipynb", "n = 1", "pass")
    assert list(available()) == ["mine"]
    monkeypatch.setattr(notebooks, "_HOMES", (tmp_path / "checkout",))
    with pytest.raises(AnalysisError, match="reinstall"):
        available()


def test_one_failing_notebook_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parameters = 'runs = "runs"\nout = "figures"\nn = 1'
    code = (
        "import json, pathlib, sys\n"
        "home = pathlib.Path(out); home.mkdir(exist_ok=True)\n"
        "seen = {'python': sys.executable, 'n': n, 'runs': runs}\n"
        "(home / 'seen.json').write_text(json.dumps(seen))"
    )
    broken = write_notebook(tmp_path / "broken.ipynb", parameters, "1 / 0")
    good = write_notebook(tmp_path / "good.ipynb", parameters, code)
    out = tmp_path / "with a space"
    monkeypatch.chdir(FIXTURE.parent)
    arguments = ["--runs", "runs", "--out", str(out), "-p", "n", "7"]
    assert main(["figures", "--only", str(broken), str(good), *arguments]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("[1/2] broken ... failed after")
    assert said[0].endswith("ZeroDivisionError: division by zero")
    assert said[1].startswith("[2/2] good ... ")
    assert said[-1] == "1 of 2 notebooks failed: broken"
    # The good one ran in this interpreter, with absolute paths and the parameter.
    seen = json.loads((out / "seen.json").read_text())
    assert seen == {"python": sys.executable, "n": 7, "runs": str(FIXTURE)}
    # Both copies are kept, the broken one with its error in it.
    assert "ZeroDivisionError" in (out / "broken.ipynb").read_text()
    assert "ZeroDivisionError" in (out / "broken.html").read_text()
    assert (out / "good.html").read_text().lstrip().lower().startswith("<!doctype html>")
    index = {entry["name"]: entry for entry in json.loads((out / "notebooks.json").read_text())}
    assert index["good"]["error"] is None
    assert "ZeroDivisionError" in index["broken"]["error"]
    assert index["good"]["parameters"]["n"] == 7


def test_several_at_a_time_reach_their_own_kernels(tmp_path: Path) -> None:
    """Through sockets, each process in its own folder; all of them work in the same one.

    The folder of temporary files has a name that is too long for a socket, as on some clusters.
    """
    code = (
        "import json, pathlib, ipykernel\n"
        "seen = json.loads(pathlib.Path(ipykernel.get_connection_file()).read_text())\n"
        "pathlib.Path(out, 'seen.json').write_text(json.dumps(seen))"
    )
    path = write_notebook(tmp_path / "own.ipynb", 'out = "figures"', code)
    crowded = tmp_path / ("deep" * 20)
    crowded.mkdir()
    before = set(Path("/tmp").glob("fog-*"))
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "fog", "figures", *("--only", str(path), "--out", str(k))],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(crowded)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for k in range(4)
    ]
    for process in started:
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
    seen = [json.loads((tmp_path / str(k) / "seen.json").read_text()) for k in range(4)]
    assert {each["transport"] for each in seen} == {"ipc"}
    assert len({each["ip"] for each in seen}) == 4
    # Nothing is left behind; folders that others made meanwhile are not ours to judge.
    folders = {Path(each["ip"]).parent for each in seen}
    assert not any(folder.exists() for folder in folders) and not folders & before
    assert not list(crowded.iterdir()) and not list(tmp_path.glob("kernel-*"))


def test_a_kernel_that_dies_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_notebook(tmp_path / "dies.ipynb", "n = 1", "import os; os._exit(9)")
    assert main(["figures", "--only", str(path), "--out", str(tmp_path / "out")]) == 1
    assert "dies ... failed after" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "theorem1"], "unknown notebook 'theorem1': did you mean 'theorem_1'?"),
        (["--only", "theorem_1", "-p", "nn", "3"], "did you mean 'n'?"),
        (["--only", "theorem_1", "-p", "out", "x"], "parameter 'out' is set by --out"),
        (["--only", "NEEDY", "--runs", "EMPTY"], "holds no runs"),
        (["--only", "NEEDY", "theorem_1", "--runs", "EMPTY"], "--only theorem_1 needs none"),
        (["--only", "NEEDY", "--runs", "EMPTY/nowhere"], "does not exist"),
        (["--only", "BROKEN"], "cannot read notebook"),
        (["--onyl", "x"], "did you mean '--only'"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "broken.ipynb").write_text("{")
    needy = write_notebook(tmp_path / "needy.ipynb", 'runs = "runs"', "pass")
    places = {"EMPTY": empty, "NEEDY": needy, "BROKEN": tmp_path / "broken.ipynb"}
    for name, path in places.items():
        arguments = [argument.replace(name, str(path)) for argument in arguments]
    assert main(["figures", *arguments, "--out", str(tmp_path / "out")]) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("fog: ") and streams.err.count("\n") == 1
    assert said in streams.err
    assert not (tmp_path / "out").exists()


def test_what_a_kernel_logs_does_not_get_into_the_progress(tmp_path: Path) -> None:
    """Such as `[IPKernelApp] ERROR | KeyboardInterrupt caught in kernel.` when it is stopped."""
    with pinned_kernel() as options, (tmp_path / "said").open("w+") as said:
        manager = KernelManager(kernel_name=options["kernel_name"])
        manager.start_kernel(stderr=said, stdout=said)
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=60)
            code = "get_ipython().kernel.log.error('KeyboardInterrupt caught in kernel.')"
            assert client.execute(code, reply=True, timeout=60)["content"]["status"] == "ok"
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
        said.seek(0)
        assert "caught" not in said.read()
