"""Parses lines of a todo.txt file."""

import re
