"""Probes that look inside a training run, and the analysis of what they recorded."""
