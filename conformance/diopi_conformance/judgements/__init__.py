"""Judgements of single functions, where another result than the reference's is right too."""

from diopi_conformance.judgements import points, voxels
from diopi_conformance.judgements.registry import written_judgement

__all__ = ["points", "voxels", "written_judgement"]
