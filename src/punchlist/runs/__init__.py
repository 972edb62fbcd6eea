"""The list of background runs: what is to be worked on, by whom, and what came of it."""
