"""Import and export (X6): formats of other tools, our lists, and `ExchangeItem` between them."""
