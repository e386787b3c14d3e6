"""Figures and tables that several studies draw, each from a page of chosen runs."""
