#!/usr/bin/env bash
# Resolve requirements.lock again: all extras and the development tools, for every platform, with hashes.
# The file names no package index: each machine uses the one it is configured for.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v uv >/dev/null 2>&1; then
  echo "Resolving the lock file needs uv, which is not on PATH. Install uv, then run 'make lock' again." >&2
  exit 1
fi
uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes \
  --no-header --no-emit-index-url --quiet "$@" --output-file requirements.lock
if grep -nE '[a-z]+://|^(-i|-f|--(extra-)?index-url|--find-links)' requirements.lock; then
  echo "requirements.lock names an address; it must not, because other machines install from elsewhere." >&2
  exit 1
fi
