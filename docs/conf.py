"""The documentation site: `make docs` builds it into site/."""

from __future__ import annotations

from typing import Any

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

import fog

project = "FoG Diagnostics"
author = "FoG Diagnostics maintainers"
version = release = fog.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
# Pages are Markdown that reads well without the site; headings get the anchors that GitHub gives.
myst_heading_anchors = 4
# `make docs` runs the notebooks on committed runs first.
nb_execution_mode = "off"
nb_merge_streams = True
# The page must load nothing from elsewhere.
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
html_theme = "furo"
html_title = "FoG Diagnostics"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False

# Docstrings are written for readers of the code: what stands in backticks there is code.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_class_signature = "separated"
# By its name: spelled out it is four lines of numpy's private classes.
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}


def _mark_code(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Tell Sphinx that what stands indented between paragraphs of a docstring is code."""
    marked: list[str] = []
    before = ""
    for line in lines:
        begins = line.startswith("    ") and bool(marked) and not marked[-1]
        if begins and not before.startswith(" ") and not before.endswith(":"):
            marked += ["::", ""]
        marked.append(line)
        before = line or before
    lines[:] = marked


def _keep_colons(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Keep `One row per run: status, scores` whole: napoleon reads a type before the colon."""
    if what in ("attribute", "data", "property"):
        lines.insert(0, "\\ ")  # a first line without colon, of which nothing is shown


def setup(app: Sphinx) -> None:
    """Show diagrams as their text, because to draw them takes a script from elsewhere."""
    app.add_lexer("mermaid", TextLexer)
    # Before napoleon.
    app.connect("autodoc-process-docstring", _mark_code, priority=400)
    app.connect("autodoc-process-docstring", _keep_colons, priority=400)
