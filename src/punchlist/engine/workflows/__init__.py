"""The workflows: what a run of each kind does."""
