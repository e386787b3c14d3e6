"""The algorithms as their papers have them: one module for each family, and what they share."""
