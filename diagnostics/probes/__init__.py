"""Probes: one module each, found by the trainer through the entry point group `fog.probes`."""
