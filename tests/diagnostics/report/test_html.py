"""The report as text: complete, self-contained, safe with odd names."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import diagnostics
from diagnostics.commands.report import command
from diagnostics.errors import AnalysisError
from diagnostics.metrics.scores import curve
from diagnostics.report.html import render, write
from tests.diagnostics.recorded import FIXTURE, copy

pytestmark = pytest.mark.filterwarnings("ignore::diagnostics.errors.RunsWarning")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "report.html"
    return render(diagnostics.load(FIXTURE), source=str(FIXTURE), out=out)


def test_every_run_and_variant_has_a_row(page):
    assert len(re.findall(r"<tr data-task=", page)) == 6 + 3
    assert page.count('href="../') + page.count("fixtures/runs") >= 6


def test_nothing_comes_from_elsewhere(page):
    loaded = re.findall(r'(?:src|srcset)="([^"]{0,40})', page)
    assert loaded
    assert all(address.startswith("data:") for address in loaded)
    assert not re.search(r"https?://|@import|url\(", page)


def test_every_picture_has_an_alternative_text(page):
    pictures = re.findall(r"<img [^>]*>", page)
    assert len(pictures) == 3
    assert all(re.search(r'alt="[^"]{10,}"', picture) for picture in pictures)


def test_the_page_says_what_its_scores_and_intervals_are():
    page = render(diagnostics.load(FIXTURE), source="x", out=Path("r.html"))
    assert "below final where the last evaluation is the highest" in page
    assert "95 % Student interval" in page and "bootstrap" not in page


def test_curves_are_drawn_in_the_page_with_their_numbers(page):
    assert len(re.findall(r'<g class="variant"', page)) == 3
    (data,) = re.findall(r"data-series='([^']+)'", page)
    evaluations = curve(diagnostics.load(FIXTURE).evals)
    first = evaluations[evaluations["label"] == "sac"].groupby("env_step")["return"].mean()
    rows = json.loads(data)[0]
    assert [row[0] for row in rows] == list(first.index)
    assert [row[1] for row in rows] == pytest.approx(list(first), rel=1e-4)
    assert "nan" not in re.findall(r'<path class="line" d="([^"]*)"', page)[0]


def test_links_lead_to_the_run_directories(tmp_path):
    shutil.copytree(FIXTURE, tmp_path / "my runs")
    out = write(diagnostics.load(tmp_path / "my runs"), tmp_path / "pages" / "r.html", source="x")
    links = re.findall(r'<td class="path"><a href="([^"]+)">', out.read_text())
    assert len(links) == 6
    for link in links:
        assert (out.parent / link.replace("%20", " ")).resolve().is_dir()


def test_odd_names_and_damaged_runs_are_shown_not_executed(tmp_path):
    bad = copy(tmp_path, "sac", probes=False)
    config = (bad / "config.yaml").read_text()
    odd = config.replace("variant: sac", "variant: <script>alert(1)</script>")
    (bad / "config.yaml").write_text(odd)
    (bad / "evals.csv").write_text("env_step,return\n100,")
    page = render(diagnostics.load(tmp_path), source="x", out=tmp_path / "r.html")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert 'id="problems"' in page
    assert "Missing." in page


def test_executed_notebooks_are_listed_with_their_figures(tmp_path):
    cells = [
        {"cell_type": "code", "source": ['page.draw(f, "one")\n', 'page.draw(f, f"two_{group}")']}
    ]
    (tmp_path / "story.ipynb").write_text(json.dumps({"cells": cells}))
    for name in ("one", "two_a", "two_B-c", "other"):
        (tmp_path / f"{name}.png").touch()
    entries = [
        {"name": "story", "seconds": 3.2, "error": None},
        {"name": "broken", "seconds": 1.0, "error": "no runs in x"},
    ]
    (tmp_path / "notebooks.json").write_text(json.dumps(entries))
    runs = diagnostics.load(FIXTURE).select(variant="sac", seed=0)
    page = render(runs, source="x", out=tmp_path / "r.html", notebooks=tmp_path)
    section = page[page.index('id="notebooks"') :]
    assert 'href="story.ipynb"' in section
    (tmp_path / "story.html").touch()
    page = render(runs, source="x", out=tmp_path / "r.html", notebooks=tmp_path)
    assert 'href="story.html"' in page
    assert re.findall(r'href="([^"]+).png"', section) == ["one", "two_B-c", "two_a"]
    assert "failed: no runs in x" in section


def test_command_writes_the_page_and_says_so(tmp_path, capsys):
    out = tmp_path / "report.html"
    assert command(["--runs", str(FIXTURE), "--out", str(out)]) == 0
    assert out.read_text().startswith("<!doctype html>")
    assert str(out) in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("options", [[], ["--notebooks", "nowhere"], ["--out", "."]])
def test_bad_input_is_one_line(tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    with pytest.raises(AnalysisError) as caught:
        command(["--runs", "runs", *options])
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.glob("*.html"))
