"""Planning cycles: cadence, deadlines and prompts."""
