"""What runs do, a file for each kind."""
