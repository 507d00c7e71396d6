"""DICP: torch.compile for every vendor of the contract, driven by the operators' schemas.

``torch.compile(model, backend="diopi")`` turns a graph into a program: calls of the vendor's library, fused kernels and
views that cost nothing. ``dicp.backend`` is the entry, ``dicp.program`` what a program is.
"""
