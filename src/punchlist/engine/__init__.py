"""Durable runs: whatever dies, they go on."""
