"""A run from its first step to its last: the loop, updates, evaluation, saving, resuming."""
