#!/bin/sh
# Makes or updates the book's environment in .venv and installs the library there, editable.
#   tools/make_venv.sh [PYTHON] [arguments for pip install]
set -eu

python=${1:-python3}
[ $# -gt 0 ] && shift
venv=.venv

say() { printf '\n== %s\n' "$*"; }

if ! command -v "$python" >/dev/null 2>&1; then
    echo "No $python here. Install Python 3.11 or later (Debian: apt-get install python3 python3-venv), or name one: make PYTHON=..." >&2
    exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "The book needs Python 3.11 or later; $python is $("$python" -c 'import platform; print(platform.python_version())'). Name another: make PYTHON=..." >&2
    exit 1
fi

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    say "Making the environment $venv with $("$python" --version)"
    rm -rf "$venv"
    if ! "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        # Debian keeps venv in a package of its own.
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
            say "Installing python3-venv"
            apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3-venv
        fi
    fi
    if "$python" -c 'import ensurepip, venv' >/dev/null 2>&1; then
        "$python" -m venv "$venv"
    elif "$python" -m virtualenv --version >/dev/null 2>&1; then
        "$python" -m virtualenv "$venv"
    elif command -v virtualenv >/dev/null 2>&1; then
        virtualenv --python "$python" "$venv"
    else
        echo "This Python can't make environments: python3-venv is missing, and so is virtualenv." >&2
        echo "Debian and Ubuntu: sudo apt-get install python3-venv   Elsewhere: $python -m pip install --user virtualenv" >&2
        exit 1
    fi
fi

say "Installing the pinned packages of requirements.txt (torch is the large one)"
"$venv/bin/python" -m pip install --disable-pip-version-check "$@" -r requirements.txt
say "Installing the library residual_gd (editable)"
"$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps --editable .
"$venv/bin/python" -m pip check
touch "$venv/.installed"
