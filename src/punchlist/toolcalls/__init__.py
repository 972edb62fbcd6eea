"""S: every tool call validated, approved, executed, recorded."""
