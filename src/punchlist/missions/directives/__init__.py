"""Directives: standing instructions of people to a mission."""
