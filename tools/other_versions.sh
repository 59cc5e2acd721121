#!/bin/sh
# Run the fast tests with the lowest versions that pyproject.toml promises, and with each other Python that is here.
set -e
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tests="tests --ignore tests/browser --ignore tests/test_house.py --ignore tests/test_notebooks.py"

try() {  # try NAME PYTHON [uv options]
    echo "== $1"
    name=$1 interpreter=$2
    shift 2
    "$python" -m uv venv --quiet --python "$interpreter" "$folder/venv"
    VIRTUAL_ENV="$folder/venv" "$python" -m uv pip install --quiet "$@" -e '.[test]'
    "$folder/venv/bin/python" -m pytest -q -n 2 --dist loadscope $tests
    rm -rf "$folder/venv"
}

own=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
try "lowest versions" "$("$python" -c 'import sys; print(sys.executable)')" --resolution lowest-direct
for version in 3.11 3.12 3.13 3.14; do
    [ "$version" = "$own" ] && continue
    interpreter=$("$python" -m uv python find --no-python-downloads "$version" 2>/dev/null) || continue
    try "Python $version" "$interpreter"
done
