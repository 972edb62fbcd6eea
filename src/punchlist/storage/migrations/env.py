"""Runs migrations on the connection, and inside the transaction, that `migrate` hands over."""

from alembic import context

from punchlist.storage.schema_version import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
