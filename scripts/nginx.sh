#!/usr/bin/env bash
# Put Debian's nginx into the folder named by the first argument, for tests/docs/test_operate.py. It is unpacked, not installed: an
# installed one would run as a service. Where there are no Debian packages, those tests are skipped, with a reason.
set -euo pipefail
folder=${1:?usage: scripts/nginx.sh FOLDER}
if [ -x "$folder/usr/sbin/nginx" ]; then exit 0; fi
if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "the test of TLS behind nginx is skipped: no Debian packages here."
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fetch() { apt-get download -qq nginx >/dev/null 2>&1; }
if ! { fetch || { [ "$(id -u)" = 0 ] && apt-get update -qq >/dev/null 2>&1 && fetch; }; }; then
  echo "the test of TLS behind nginx is skipped: the package nginx could not be loaded."
  exit 0
fi
dpkg-deb -x nginx_*.deb "$folder"
