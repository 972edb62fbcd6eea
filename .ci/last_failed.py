"""Print the tests that failed in the last pytest run, a line each."""

import json
from pathlib import Path

print("\n".join(sorted(json.loads(Path(".pytest_cache/v/cache/lastfailed").read_text()))))
