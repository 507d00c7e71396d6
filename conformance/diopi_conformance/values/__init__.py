"""What goes into a call: random values, element types, how tensors lie in memory."""
