#!/bin/sh
# Install those of the named Debian packages that are missing: debian_packages.sh python3-venv chromium bubblewrap
missing=
for package in "$@"; do
    case $package in
        python3-venv) "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null ;;
        bubblewrap) command -v bwrap >/dev/null ;;
        *) command -v "$package" >/dev/null ;;
    esac || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if [ "$(id -u)" = 0 ]; then as_root=; elif command -v sudo >/dev/null; then as_root=sudo; else as_root=none; fi
if [ "$as_root" = none ] || ! command -v apt-get >/dev/null; then
    echo "Missing on this machine:$missing. On Debian: apt-get install$missing, as root." >&2
    case "$CI$missing" in true* | *python3-venv*) exit 1 ;; esac  # without the others the tests that need them say so
    exit 0
fi
case $missing in *chromium*) missing="$missing fontconfig fonts-liberation" ;; esac  # a browser without fonts draws boxes
echo "Installing Debian packages:$missing"
$as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
