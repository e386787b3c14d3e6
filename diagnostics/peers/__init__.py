"""Published curves of other methods: read, kept in one tidy format, set beside this project's runs.

The files belong to their authors and are not part of this project. `fog import` reads them from a
checkout of the repository that holds them; docs/peers.md says where each comes from.
"""
