"""Judgements of single functions, where another result than the reference's is right too."""

from diopi_conformance.judgement.special import points, regions, unordered, voxels, windows
from diopi_conformance.judgement.special.registry import may_reorder, written_judgement

__all__ = ["may_reorder", "points", "regions", "unordered", "voxels", "windows", "written_judgement"]
