"""What surfaces show: one call each."""
