"""What a running process uses, seen from outside."""
