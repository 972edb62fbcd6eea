"""Questions to a person about a todo."""
