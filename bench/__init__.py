"""How fast Punchlist is, against the raw limit of what it stands on: `python -m bench`."""
