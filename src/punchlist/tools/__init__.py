"""What an agent can call: files, search, commands, servers, and your own functions."""
