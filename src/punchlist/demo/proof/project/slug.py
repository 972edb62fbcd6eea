"""Turns a title into the last part of an address."""


def slugify(title: str) -> str:
    return title.lower().replace(" ", "-")
