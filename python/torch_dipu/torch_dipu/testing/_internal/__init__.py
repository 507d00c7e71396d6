"""Where the established package of this name has its helpers for tests."""
