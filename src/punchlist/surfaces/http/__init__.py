"""What the HTTP servers share: which requests are considered, limits, connections, and running uvicorn."""
