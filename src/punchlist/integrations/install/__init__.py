"""Registering Punchlist in the configuration of the agents that people already run, and taking it out again."""
