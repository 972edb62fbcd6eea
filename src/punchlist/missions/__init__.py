"""M: goals that take months: pillars with metrics, scarce slots, a Lead who alone calls a todo done."""
