#!/usr/bin/env bash
# Show what NoETL does, in its own commands: check playbooks, start a server with a worker, run playbooks over HTTP, look.
# Every command is printed before it runs. On a terminal the server stays until Ctrl-C; elsewhere the demo ends by itself.
# The code is other than 0 if a command did not do what it should. Nothing of it stays: no process, no file.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi

say() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }

fail() {
  printf 'make demo: %s\n' "$1" >&2
  exit 1
}

# run EXPECTED COMMAND…: print the command, run it, and stop when its exit code is not the expected one.
run() {
  local expected=$1 code=0
  shift
  printf '%s$ %s%s\n' "$dim" "$*" "$plain"
  "$@" || code=$?
  [ "$code" = "$expected" ] || fail "\"$*\" ended with code $code; it should have been $expected."
}

# quiet EXPECTED COMMAND…: as run, without its output.
quiet() {
  local expected=$1 code=0
  shift
  printf '%s$ %s%s\n' "$dim" "$*" "$plain"
  "$@" >"$NOETL_HOME/quiet.log" 2>&1 || code=$?
  [ "$code" = "$expected" ] || fail "\"$*\" ended with code $code; it should have been $expected. $(cat "$NOETL_HOME/quiet.log")"
}

# The executions of the demo live in a folder of their own, which goes away with it; settings of another store stay out.
NOETL_HOME=$(mktemp -d)
export NOETL_HOME
unset PYTHONDONTWRITEBYTECODE # the first start compiles, the others do not
unset NOETL_DB_URL NOETL_SERVER_URL NOETL_HOST NOETL_AUTH NOETL_TOKEN NOETL_TOKEN_FILE
server=''
finish() {
  if [ -n "$server" ]; then
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$NOETL_HOME"
}
trap finish EXIT
trap 'exit 0' INT TERM

# up PORT: start a server with a worker there, and wait until it has told its address; false where the port is taken.
up() {
  noetl up --port "$1" 2>"$NOETL_HOME/up.log" &
  server=$!
  until url=$(grep -o -m1 'http://[^ ]*' "$NOETL_HOME/up.log") && grep -q '?token=' "$NOETL_HOME/up.log"; do
    kill -0 "$server" 2>/dev/null || return 1
    sleep 0.05
  done
}

say "1. A playbook is a YAML file. This is the smallest useful one:"
run 0 cat examples/hello.yaml

say "2. NoETL checks it before anything runs. A broken one gets line, reason and fix:"
run 0 noetl validate examples/hello.yaml
run 1 noetl validate examples/broken/hello.yaml

say "3. A server and a worker in one process, on one SQLite file:"
printf '%s$ noetl up%s\n' "$dim" "$plain"
up "${NOETL_PORT:-8082}" || up 0 || fail "noetl up did not start: $(cat "$NOETL_HOME/up.log")"
cat "$NOETL_HOME/up.log"

say "4. Two executions over HTTP: a greeting, and a parallel sweep with retries on a simulated backend:"
printf '%s$ export NOETL_TOKEN="$(noetl token show --server %s)"%s\n' "$dim" "$url" "$plain"
NOETL_TOKEN=$(noetl token show --server "$url") || fail "the server at $url has no token."
export NOETL_TOKEN
run 0 python scripts/demo_run.py "$url" examples/hello.yaml who=there
run 0 python scripts/demo_run.py "$url" examples/quantum_sweep.yaml points=8

say "5. Where a person looks: one waits for an approval, one failed and is repaired, one has dead letters and a schedule:"
export NOETL_SERVER_URL=$url
quiet 0 noetl register examples/release.yaml examples/parameter_sweep.yaml examples/import_orders.yaml
quiet 0 noetl exec examples/release
quiet 1 noetl exec examples/parameter_sweep --set 'depths=[]' --wait
quiet 0 noetl fork last --from combine --patch 'workload.depths=[2, 4]'
quiet 5 noetl exec examples/import_orders --wait # partial
run 0 noetl dlq groups

say "Summary"
noetl runs --server "$url"
cat <<TEXT
  $url/?token=$NOETL_TOKEN
                                 what runs here; $url/docs has the API
  noetl explain last --server $url
  docs/tutorials/first-look.md   run, branch, break, fix, in three minutes, in the browser
  docs/tutorials/first-run.md    run, look, answer, fork, in ten minutes (noetl is in .venv/bin)
TEXT

if [ -t 0 ] && [ -t 1 ]; then
  say "The server runs until Ctrl-C: $url/?token=$NOETL_TOKEN"
  wait "$server"
else
  say "Without a terminal the server stops here. 'noetl up' starts one again: $url/"
fi
