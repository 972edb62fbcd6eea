"""Ways in: each parses, calls one service function, and renders. They do not know each other."""
