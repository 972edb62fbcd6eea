"""Slash commands of the terminal application."""
