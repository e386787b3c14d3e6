"""What a run leaves on disk, and what trainer and analysis must agree on. Imports no torch."""
