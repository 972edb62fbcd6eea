"""Rules for passwords. A rule takes a password and returns a message, or None if the password is fine."""

from pathlib import Path

COMMON = Path(__file__).with_name("common.txt")


def problems(password):
    return []
