"""Operators that are made wrong on the device, in six ways, to see whether `op-tools bisect` names them."""
