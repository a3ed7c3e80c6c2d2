#!/usr/bin/env bash
# Run the fast tests on every other Python that pyproject.toml names as supported and this machine has.
# Each gets its own environment, .venv-3.12 and so on. A Python that is not here is named and skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

find_python() {
  local candidate
  for candidate in "python$1" "$HOME"/.pyenv/versions/"$1".*/bin/python; do
    if "$candidate" -c '' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  if command -v uv >/dev/null 2>&1; then
    uv python find --offline "$1" 2>/dev/null
  fi
}

for version in $(sed -n 's/.*Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml); do
  python=$(find_python "$version" || true)
  if [ "$version" = 3.11 ]; then
    continue # `make test` runs on it
  elif [ -z "$python" ]; then
    echo "Python $version is not on this machine: skipped."
  else
    PYTHON="$python" scripts/setup.sh ".venv-$version"
    ".venv-$version/bin/python" -m pytest -n "${JOBS:-2}" -p no:cacheprovider tests/unit
    ".venv-$version/bin/python" -m noetl test examples/*.test.yaml
  fi
done
