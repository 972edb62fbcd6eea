def route(start, goal):
    return [start, goal]


def old_route(goal, start):
    """Deprecated: use route."""
    return route(start, goal)
