"""What the notebooks say: each function takes loaded runs and returns a figure or a table.

Notebooks hold no logic. They open a `Page` on the runs they are about and draw on it; what is not
on disk is said in a sentence.
"""
