# A file store.
FILES = 6
