# Before a release, both places must name the same version, and the changelog must have it.
version=$(cat VERSION)
grep -q "version = \"$version\"" app.py || { echo "app.py does not say $version"; exit 1; }
grep -q "^## $version" CHANGELOG.md || { echo "CHANGELOG.md has no entry for $version"; exit 1; }
echo "release $version is consistent"
