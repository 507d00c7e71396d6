"""What should come out of a call: by PyTorch here and now, or as it was stored."""
