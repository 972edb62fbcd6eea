"""The lists in other people's frameworks: each file is one framework's, over `lists.py`, which they share."""
