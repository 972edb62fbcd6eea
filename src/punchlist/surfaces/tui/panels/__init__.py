"""Panels of the terminal application: missions, todos, metrics, runs, plans, sessions."""
