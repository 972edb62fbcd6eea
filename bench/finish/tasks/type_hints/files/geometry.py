import math


def distance(x1, y1, x2, y2):
    return math.hypot(x2 - x1, y2 - y1)


def midpoint(x1, y1, x2, y2):
    return ((x1 + x2) / 2, (y1 + y2) / 2)


def angle(x, y):
    return math.degrees(math.atan2(y, x))
