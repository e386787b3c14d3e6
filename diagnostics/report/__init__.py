"""Runs for a reader: the comparison table, executed notebooks, one HTML page."""
