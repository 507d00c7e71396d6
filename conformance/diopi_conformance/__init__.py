"""The conformance suite: runs the planned cases against a vendor's library and says which functions hold."""
