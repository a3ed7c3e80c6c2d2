#!/usr/bin/env bash
# Put Debian's Prometheus and Alertmanager into the folder named by the first argument, for tests/observe. They are unpacked, not
# installed: installed ones would run as services. Where there are no Debian packages, those tests are skipped, with a reason.
set -euo pipefail
folder=${1:?usage: scripts/prometheus.sh FOLDER}
if [ -x "$folder/usr/bin/promtool" ] && [ -x "$folder/usr/bin/prometheus-alertmanager" ]; then exit 0; fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "tests/observe/test_prometheus.py and test_alertmanager.py are skipped: no Debian packages here."
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fetch() { apt-get download -qq prometheus prometheus-alertmanager >/dev/null 2>&1; }
if ! { fetch || { [ "$(id -u)" = 0 ] && apt-get update -qq >/dev/null 2>&1 && fetch; }; }; then
  echo "tests/observe/test_prometheus.py and test_alertmanager.py are skipped: their packages could not be loaded."
  exit 0
fi
for package in prometheus_*.deb prometheus-alertmanager_*.deb; do dpkg-deb -x "$package" "$OLDPWD/$folder"; done
