"""What lies in a folder of results, told operator by operator: as JSON and as one HTML page."""
