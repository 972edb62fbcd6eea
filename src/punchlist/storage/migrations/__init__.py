"""Alembic's folder: one file in `versions` for each step of the schema."""
