"""Workers and durable workflows: runs survive the death of the process that works on them."""
