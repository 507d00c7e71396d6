"""Changes of a graph before it becomes a program."""
