"""The documentation site: complete, and what it is built from is pinned. `make docs` builds it."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def navigation() -> list[str]:
    """The entries of all menus."""
    menus = TOCTREE.findall((DOCS / "index.md").read_text())
    lines = [line for menu in menus for line in menu.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def test_every_page_is_in_the_navigation_once() -> None:
    pages = sorted(path.stem for path in DOCS.glob("*.md") if path.stem != "index")
    assert sorted(entry for entry in navigation() if "*" not in entry) == pages


def test_every_page_is_reachable_from_the_readme() -> None:
    linked = set(LINK.findall((ROOT / "README.md").read_text()))
    pages = {f"docs/{path.name}" for path in DOCS.glob("*.md")} - {"docs/index.md", "docs/api.md"}
    assert pages <= {link.partition("#")[0] for link in linked}


def test_links_between_files_lead_somewhere() -> None:
    for page in (*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for link in LINK.findall(page.read_text()):
            if not link.startswith(("http", "#", "mailto:")):
                assert (page.parent / link.partition("#")[0]).exists(), (page.name, link)


def test_the_api_page_names_what_is_public() -> None:
    import diagnostics
    import fog

    text = (DOCS / "api.md").read_text()
    for package in (fog, diagnostics):
        for name in set(package.__all__) - {"__version__", "Config"}:
            assert f":: {package.__name__}.{name}\n" in text, name


def test_a_colon_in_the_first_line_of_a_property_is_no_type() -> None:
    pytest.importorskip("sphinx", reason="`make docs` installs it")
    from sphinx.ext.napoleon import Config, GoogleDocstring

    keep = runpy.run_path(str(DOCS / "conf.py"))["_keep_colons"]
    lines = ["One row per run: status, scores."]
    keep(None, "property", "runs", None, None, lines)
    read = str(GoogleDocstring(lines, Config(), None, "property", "runs"))
    assert "One row per run: status, scores." in read and ":type:" not in read


def test_no_file_is_named_twice_in_a_row() -> None:
    """As in `results/claims.md (results/claims.md)`, which a link to a file of no page became."""
    for page in DOCS.glob("*.md"):
        assert not re.search(r"(\S+/\S+) \(`\1`\)", page.read_text()), page.name


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PAGE = """<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="{css}">
<article><p><img src="{figure}"></p>
<div class="cell_output"><a><img src="{figure}"></a></div>
<div class="output stderr"><pre>{path}</pre></div></article>"""


@pytest.mark.skipif(
    not (CHROMIUM and shutil.which("chromedriver")), reason="chromium is not installed"
)
def test_figures_and_warnings_can_be_read_on_a_phone(tmp_path: Path) -> None:
    """Figures as large as their text needs and no larger, and the page itself does not scroll."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    page = tmp_path / "page.html"
    css = (DOCS / "_static" / "site.css").as_uri()
    figure = next((ROOT / "figures" / "results").rglob("*.png")).as_uri()
    page.write_text(PAGE.format(css=css, figure=figure, path="/a/long/path" * 100))
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    driver = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    try:
        phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        driver.get(page.as_uri())
        wide = driver.execute_script("return document.documentElement.scrollWidth")
        figures = driver.execute_script("return [...document.images].map(i => i.clientWidth)")
    finally:
        driver.quit()
    assert wide <= 390
    assert figures == [608, 608]
