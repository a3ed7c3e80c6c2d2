#!/usr/bin/env bash
# Make the virtual environment named by the first argument from a lock file, then put NoETL into it, editable. What is there
# stays: an environment of requirements-run.lock is completed by requirements.lock.
# Uses uv where it is installed (faster), otherwise only the interpreter's own venv and pip; both give the same packages.
# Tested by `make test` in a fresh clone.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:?usage: scripts/setup.sh VENV [LOCK]}
lock=${2:-requirements.lock}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if new_enough "$candidate"; then
      command -v "$candidate"
      return
    fi
  done
  echo "NoETL needs Python 3.11 or newer, and none of these is: ${PYTHON:-python3 python3.13 python3.12 python3.11 python}." >&2
  echo "Install one, or name yours: make PYTHON=/path/to/python3.11" >&2
  return 1
}

if ! { [ -x "$venv/bin/python" ] && new_enough "$venv/bin/python"; }; then
  # An old environment is made anew; anything else that stands there is not ours to clear away.
  if [ -e "$venv" ] && [ ! -e "$venv/pyvenv.cfg" ] && [ -n "$(ls -A "$venv")" ]; then
    echo "$venv exists and is not a virtual environment, so it is left alone. Name another place: make VENV=/some/where/else" >&2
    exit 1
  fi
  python=$(find_python)
  echo "Making $venv with $("$python" --version)"
  without='' # uv installs without pip, and adding pip takes seconds
  if command -v uv >/dev/null 2>&1; then without=--without-pip; fi
  if ! "$python" -m venv --clear $without "$venv"; then
    echo "'$python -m venv' failed. Some systems ship it apart: install the package python3-venv, then run make again." >&2
    exit 1
  fi
fi

echo "Installing what $lock pins into $venv"
if command -v uv >/dev/null 2>&1; then
  uv pip install --quiet --python "$venv/bin/python" --require-hashes -r "$lock"
  uv pip install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation -e .
else
  "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
  pip=("$venv/bin/python" -m pip --disable-pip-version-check --quiet)
  "${pip[@]}" install --no-compile --require-hashes -r "$lock"
  "${pip[@]}" install --no-deps --no-build-isolation -e .
fi
# Where PYTHONDONTWRITEBYTECODE is set, every start would compile again. The demo compiles only what it imports.
if [ "$lock" = requirements.lock ]; then
  "$venv/bin/python" -m compileall -qq -j 0 src "$venv/lib" || true # some packages have files of other Pythons
fi
