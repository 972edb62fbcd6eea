"""`punchlist db check`: verifies the hash chains and compares rows with their events."""
