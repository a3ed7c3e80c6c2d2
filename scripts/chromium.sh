#!/usr/bin/env bash
# Install Debian's Chromium for tests/ui, where it is missing and root may. Elsewhere those tests are skipped, with a reason.
set -euo pipefail
if command -v chromium >/dev/null; then exit 0; fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "tests/ui are skipped: no chromium here, and only root on Debian can install it."
  exit 0
fi
if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1; then
  echo "tests/ui are skipped: chromium could not be installed."
fi
