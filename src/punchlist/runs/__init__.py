"""Background runs: the queue, its lifecycle, and how people control a run."""
