"""`punchlist hook`: stop, prompt, session and tool hooks of third-party agents."""
