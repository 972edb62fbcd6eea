import math


def circle(radius):
    return math.pi * radius**2


def rectangle(width, height):
    return width * height
