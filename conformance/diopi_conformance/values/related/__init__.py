"""Inputs that must fit each other, made so after all were drawn; computed without PyTorch, on whatever machine runs."""

from diopi_conformance.values.related import boxes, losses, points, regions, samples
from diopi_conformance.values.related.registry import related_inputs

__all__ = ["boxes", "losses", "points", "regions", "related_inputs", "samples"]
