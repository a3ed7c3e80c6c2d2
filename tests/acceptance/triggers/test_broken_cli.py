"""Triggers that cannot be read are printed as broken, each with the reason."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

from tests.acceptance.running import Folder
from tests.server.serving import process

STORED = {  # command → kind, and what the store holds
    "notification": ("notification", {"on": ["failed"], "channel": "email", "credential": "c", "to": [5]}),
    "trigger": ("ended", {"path": 5}),
    "webhook": ("webhook", {"auth": "secret", "credential": 5}),
    "subscription": ("subscription", {"source": "folder", "folder": 5}),
}


def test_what_cannot_be_read_is_printed_as_broken(folder: Folder) -> None:
    with process(folder.path, "up") as (url, _):
        with closing(sqlite3.connect(folder.path / ".noetl" / "noetl.db", timeout=30)) as store, store:
            for kind, spec in STORED.values():
                row = (kind, "b", "test/x", json.dumps(spec), "", 0, 1, "ann", 1)
                names = "kind, trigger_id, path, spec, owner, paused, created_at, created_by, changed_at"
                store.execute(f"INSERT INTO playbook_trigger ({names}) VALUES ({', '.join('?' * len(row))})", row)
        for word in STORED:
            assert "broken" in folder.call(word, "list", "--server", url).out
            shown = folder.call(word, "show", "b", "--server", url).out
            assert "broken" in shown
            assert "made by ann" in shown
            assert "cannot be read: Expected `str`, got `int`" in shown
