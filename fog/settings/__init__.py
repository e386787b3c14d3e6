"""What an experiment is: tasks, variants, scale, and every setting with its bounds."""
