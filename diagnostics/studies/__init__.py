"""Studies: one module for each experiment, with its variants, plan, claims and figures.

Notebooks hold no logic. They open a `Page` on their runs and draw on it; a sentence says what is
missing on disk. `study` defines what a study is.
"""
