"""Unit conversions, registered by name."""

CONVERSIONS = {}


def register(function):
    CONVERSIONS[function.__name__] = function
    return function


def convert(name, value):
    if name not in CONVERSIONS:
        raise KeyError(f"unknown conversion {name}; known: {', '.join(sorted(CONVERSIONS))}")
    return CONVERSIONS[name](value)
