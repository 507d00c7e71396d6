"""Prints where the minutes of builds and tests went, beside the run before, and keeps the figures in the repository."""
