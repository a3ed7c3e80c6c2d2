#!/usr/bin/env bash
# Show what NoETL does today, in its own commands: check playbooks, report a broken one, draw, explain, run, look.
# Every command is printed before it runs. Ends by itself, with a code other than 0 if a command did not do what it should.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi

say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }

# run EXPECTED COMMAND…: print the command, run it, and stop when its exit code is not the expected one.
run() {
  local expected=$1 code=0
  shift
  printf '%s$ %s%s\n' "$dim" "$*" "$plain"
  "$@" || code=$?
  if [ "$code" != "$expected" ]; then
    printf 'make demo: "%s" ended with code %s; it should have been %s.\n' "$*" "$code" "$expected" >&2
    exit 1
  fi
}

say "1. A playbook is a YAML file. This is the smallest useful one:"
run 0 cat examples/hello.yaml

say "2. NoETL checks it whole, templates included, before anything runs:"
run 0 noetl validate examples/*.yaml

say "3. A broken one: everything that is wrong, in one pass, with the place and the fix. The code says so too (1):"
run 1 noetl validate examples/broken/hello.yaml

say "4. A playbook is a net of steps; see where a token can go:"
run 0 noetl graph examples/hello.yaml

say "5. Anything can be asked for: a tool kind, a diagnostic, a field:"
run 0 noetl explain noop

# The executions of the demo live in a folder of their own, which goes away with it.
NOETL_HOME=$(mktemp -d)
export NOETL_HOME
trap 'rm -rf "$NOETL_HOME"' EXIT

say "6. Now run it. Progress goes to standard error, the result to standard output:"
run 0 noetl run examples/hello.yaml --set who="there"

say "7. An execution is a log of events. How did it go, and what was recorded?"
run 0 noetl status last
run 0 noetl events last

say "8. Every decision is on record with the values it read:"
run 0 noetl explain last

say "9. A parallel sweep with retries on a simulated backend:"
run 0 noetl run examples/quantum_sweep.yaml --set points=8

say "Where to look next"
cat <<'TEXT'
  docs/tutorials/first-run.md         run, look, answer, fork, in ten minutes
  docs/tutorials/first-playbook.md    write one yourself, in ten minutes
  docs/how-to/editor-setup.md         the same checks while you type
  examples/                           playbooks to copy from
  noetl --help                        every command (it lives in .venv/bin)
TEXT
