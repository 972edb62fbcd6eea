"""Agents of others: what their hooks tell us, and what we answer."""
