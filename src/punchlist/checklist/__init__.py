"""The session checklist (TodoWrite): the agent replaces the whole list, people watch it."""
