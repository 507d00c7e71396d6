"""The libraries of droplet, beside this file; torch_dipu finds them by an entry point."""
