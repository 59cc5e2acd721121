#!/bin/sh
# Run lessons and tests with the lowest versions that pyproject.toml promises, and from the lock with each other Python that is here.
set -e
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

try() {  # try NAME PYTHON [what to install]
    echo "== $1"
    interpreter=$2
    shift 2
    "$python" -m uv venv --quiet --python "$interpreter" "$folder/venv"
    "$python" -m uv pip install --quiet --python "$folder/venv" "$@"
    "$python" -m uv pip install --quiet --python "$folder/venv" --no-deps -e .
    "$folder/venv/bin/python" -m pytest -q -n 2 --dist loadscope --nbval --nbval-cell-timeout 120 notebooks tests \
        --ignore tests/browser --ignore tests/test_notebooks.py --ignore tests/test_course.py --ignore tests/test_wheel.py \
        --ignore tests/test_locks.py --ignore tests/test_contracts.py --ignore tests/test_repository.py --ignore tests/test_mutants.py
    rm -rf "$folder/venv"
}

own=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
for version in 3.11 3.12 3.13 3.14; do
    interpreter=$("$python" -m uv python find --no-python-downloads "$version" 2>/dev/null) || continue
    if [ "$version" = 3.11 ]; then  # the lowest versions have wheels for the lowest Python only
        try "lowest versions, Python $version" "$interpreter" --resolution lowest-direct '.[test,peers,nbgrader]'
    fi
    [ "$version" = "$own" ] || try "the lock, Python $version" "$interpreter" --require-hashes -r requirements-test.lock
done
