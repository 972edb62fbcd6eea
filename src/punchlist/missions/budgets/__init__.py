"""What a mission may spend, and what it has spent."""
