#!/usr/bin/env bash
# Resolve the lock files again, for every platform, with hashes. They name no package index: each machine uses the one it is
# configured for.
#   requirements.lock       all extras and the development tools
#   requirements-run.lock   what running NoETL needs, in the same versions; `make demo` installs only this
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v uv >/dev/null 2>&1; then
  echo "Resolving the lock files needs uv, which is not on PATH. Install uv, then run 'make lock' again." >&2
  exit 1
fi
compile=(uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --quiet)
"${compile[@]}" --all-extras --group dev "$@" --output-file requirements.lock
"${compile[@]}" --group build --no-annotate --constraint requirements.lock --output-file requirements-run.lock
if grep -nE '[a-z]+://|^(-i|-f|--(extra-)?index-url|--find-links)' requirements.lock requirements-run.lock; then
  echo "A lock file names an address; it must not, because other machines install from elsewhere." >&2
  exit 1
fi
