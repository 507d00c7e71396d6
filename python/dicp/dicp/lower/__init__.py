"""From the graph of AOTAutograd to a program: each node becomes a view, a kernel of one step, a call, or an island."""

from dicp.lower.graph import lower
from dicp.lower.state import NothingOnDevice, Unsupported

__all__ = ["NothingOnDevice", "Unsupported", "lower"]
