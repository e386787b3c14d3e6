"""The machine around a run: processes, signals, terminals, folders for compiled code."""
