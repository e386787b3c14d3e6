"""The documentation site: complete, and what it is built from is pinned. `make docs` builds it."""

from __future__ import annotations

import re
from pathlib import Path

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
