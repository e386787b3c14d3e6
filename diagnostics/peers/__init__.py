"""Curves that others published: read, kept in one tidy form, and set beside this project's runs.

The files are the peers' and are not part of this project. `fog import` reads them from a checkout
of the repository that holds them; docs/peers.md says where each comes from.
"""
