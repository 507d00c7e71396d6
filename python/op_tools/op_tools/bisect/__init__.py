"""Finds the operator, and then the call, that breaks a training run."""
