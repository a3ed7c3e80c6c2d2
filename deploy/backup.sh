#!/bin/sh
# Back up a SQLite store, its large results and its key, also while they are in use.
#   NOETL_HOME=/var/lib/noetl deploy/backup.sh /var/backups/noetl
# Each backup is a folder of its own; the newest $KEEP (14) stay. Tested in tests/docs/test_operate.py.
set -eu
target=${1:?usage: deploy/backup.sh FOLDER}
home=${NOETL_HOME:-.noetl}
umask 077
made=$target/$(date -u +%Y%m%dT%H%M%SZ)
mkdir -p "$made.part"
noetl admin backup "$made.part/noetl.db" --store "$home/noetl.db"
# After the store: every result that the backup refers to is there. More of them do no harm.
if [ -d "$home/blobs" ]; then cp -R "$home/blobs" "$made.part/blobs"; fi
if [ -f "$home/key" ]; then cp "$home/key" "$made.part/key"; fi
mv "$made.part" "$made"
ls -d "$target"/*Z | head -n "-${KEEP:-14}" | while read -r old; do rm -rf "$old"; done
echo "$made"
