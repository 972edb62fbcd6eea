# Says whether slugify is right.
python3 -B - <<'CHECK'
from slug import slugify

for title, expected in {"Hello World": "hello-world", "  Two   spaces ": "two-spaces"}.items():
    found = slugify(title)
    if found != expected:
        raise SystemExit(f"slugify({title!r}) is {found!r}, expected {expected!r}")
print("slugify is right")
CHECK
