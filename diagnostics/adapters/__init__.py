"""Probes on other people's agents: `sb3`, `loop` for plain torch, `checkpoint`; see `observer`."""
