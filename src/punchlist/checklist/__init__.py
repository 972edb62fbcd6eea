"""The session checklist (TodoWrite): the agent rewrites it whole, people watch it."""
