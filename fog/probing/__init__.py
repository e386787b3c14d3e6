"""Probes in a run: found, called, timed, and shown the agent through a read-only view."""
