"""Studies: one module for each experiment, with its variants, plan, claims and figures.

Notebooks hold no logic. They open a `Page` on the runs they are about and draw on it; what is not
on disk is said in a sentence. `study` says how a study is made.
"""
