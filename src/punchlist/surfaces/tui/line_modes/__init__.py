"""`punchlist chat --inline` and `--plain`: a conversation as lines in the terminal's own scrollback."""
