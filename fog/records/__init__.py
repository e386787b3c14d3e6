"""What the trainer and the analysis must agree on. Nothing here imports torch."""
