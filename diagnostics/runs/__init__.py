"""Recorded runs: found, loaded as tables, labelled, summed up and exported."""
