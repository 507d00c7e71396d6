"""A program as C++ that includes nothing of torch."""
