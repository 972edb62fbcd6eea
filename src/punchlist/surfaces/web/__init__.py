"""`punchlist serve`: the HTTP API, its events and the pages."""
