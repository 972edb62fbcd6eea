"""The turn plan: items a supervisor creates, works through one by one, and drains."""
