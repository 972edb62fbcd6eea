"""X3: several agents take work from one list."""
