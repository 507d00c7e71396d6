"""What every HTML report shares: the frame of a page, its style, macros, and the script of its tables."""
