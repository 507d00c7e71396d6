"""To look into compiled programs: checked against eager mode, profiled, written down, drawn."""
