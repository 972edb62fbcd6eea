"""Lists of other tools, read and written (X6): formats on one side, our lists on the other, `Entry` between them."""
