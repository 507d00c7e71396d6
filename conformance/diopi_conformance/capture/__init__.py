"""From a running model to cases: what it asks of PyTorch, as calls of the contract's functions."""
