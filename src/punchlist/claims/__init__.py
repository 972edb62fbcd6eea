"""Claims: several agents take work from one list, each todo held by one agent under a lease (X3)."""
