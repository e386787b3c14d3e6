"""Commands that this package adds to `fog`. Only they know the trainer's command line."""
