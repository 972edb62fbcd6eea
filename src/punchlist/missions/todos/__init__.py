"""Mission todos: lifecycle, limits, tools, checks and claims."""
