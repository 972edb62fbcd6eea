"""Tell people about the requests in their inbox."""
