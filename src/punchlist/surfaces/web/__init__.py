"""Mission control in the browser, and the HTTP API behind it."""
