"""Is what is stored what was written? The trail's chains, and the lists replayed from it."""
