"""Metrics: readings, status, trend and collectors."""
