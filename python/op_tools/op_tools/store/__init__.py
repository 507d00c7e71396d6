"""Captured calls on disk: a folder for each call with JSON, and the memory of tensors once for equal contents."""
