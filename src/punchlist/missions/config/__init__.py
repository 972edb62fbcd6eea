"""The mission file: validation, JSON Schema, changes, and trust in what it runs."""
