"""Benchmarks of Punchlist against the raw cost of what it builds on: `python -m bench`."""
