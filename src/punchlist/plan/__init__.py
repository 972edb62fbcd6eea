"""The turn plan: the todos that a supervisor creates and completes one by one within a turn."""
