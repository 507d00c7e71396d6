"""Idioms of programs that a function of the vendor computes at once, or that fused loops compute best."""

from dicp.patterns.rewrite import Applied, rewritten
from dicp.patterns.table import Pattern, Patterns, pattern_table

__all__ = ["Applied", "Pattern", "Patterns", "pattern_table", "rewritten"]
