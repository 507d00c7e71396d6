"""Runs the steps of builds, shows the time that is left, and records what each unit took."""
