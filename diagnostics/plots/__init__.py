"""Figures: arrays or tables in, matplotlib figures out, saved together with what they show."""
