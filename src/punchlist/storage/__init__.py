"""Where lists are kept: one schema for SQLite and PostgreSQL, migrations, and the event log."""
