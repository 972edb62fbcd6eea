"""What `punchlist demo` works on: a small project, and what the model says in it."""
