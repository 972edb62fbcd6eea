"""Third-party agents (hosts): decisions for their hooks, and installation into their settings."""
