#!/usr/bin/env bash
# Put chdb, the engine of ClickHouse as a library, into the folder named by the first argument, for tests/observe. It is large,
# so it is not among the development tools. Where it cannot be loaded, those tests are skipped, with a reason.
set -euo pipefail
folder=${1:?usage: scripts/clickhouse.sh FOLDER [PYTHON]}
python=${2:-python3}
if [ -e "$folder/.complete" ]; then exit 0; fi
install=("$python" -m pip install --quiet --disable-pip-version-check)
if command -v uv >/dev/null 2>&1; then install=(uv pip install --quiet --python "$python"); fi
if ! "${install[@]}" --target "$folder" chdb==4.4.0 chdb-core==26.9.0 2>/dev/null; then
  echo "tests/observe/test_clickhouse.py is skipped: the package chdb could not be loaded."
  exit 0
fi
touch "$folder/.complete"
