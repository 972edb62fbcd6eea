"""The chats of a mission and its pillars."""
