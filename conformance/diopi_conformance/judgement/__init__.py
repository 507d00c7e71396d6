"""Whether what came out is right."""
