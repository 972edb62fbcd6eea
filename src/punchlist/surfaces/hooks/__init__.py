"""Hooks for the agents that people already run."""
