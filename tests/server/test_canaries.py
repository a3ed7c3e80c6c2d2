"""No secret is in any store, answer, stream, log, metric, cassette or print-out.

Canaries go through every kind that runs here, by success, error, retry, dead letter, child and outbox. They are searched
in everything that was written and shown, in five encodings.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import logging
import re
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from noetl.cli.runtime.runner import _safe_lines
from noetl.masking.values import MASK
from noetl.server.auth.vault import new_key
from noetl.settings import ServerSettings
from tests.acceptance.run import noetl
from tests.server.api.test_masking import read_everything
from tests.server.serving import Served, in_process, playbook
from tests.tools.web import Web

pytestmark = pytest.mark.asyncio
TOKEN = 'c4nary/t0ken+"ä"-7f3e9b1c'
PASSWORD = "c4nary&pass<word>-52d80aa4"
HOOK = "c4naryHookPart0193bd"
CREDENTIALS = {
    "api": {"token": TOKEN},
    "db": {"host": "127.0.0.1", "port": 1, "user": "u", "password": PASSWORD, "dbname": "d"},
    "hook": {"url": "{web}/hooks/" + HOOK},
}
# One task for each way in which a secret may leave a kind. `{web}` is a server that sends back what it gets.
TASKS: dict[str, dict[str, Any]] = {
    "prints": {
        "kind": "python",
        "input": {"t": "{{ keychain.api.token }}", "p": "{{ keychain.db.password }}"},
        "code": "import sys, base64, json, urllib.parse as u\n"
        "for s in (t, p):\n"
        "    print(s, base64.b64encode(s.encode()).decode(), u.quote(s), s.encode().hex(), json.dumps(s))\n"
        "print(t, file=sys.stderr)\nresult = {'shown': [t, p.encode().hex()], t: 1}\n",
    },
    "raises": {"kind": "python", "input": {"t": "{{ keychain.api.token }}"}, "code": "raise ValueError(t + t.encode().hex())"},
    "large": {"kind": "python", "input": {"t": "{{ keychain.api.token }}"}, "code": "result = [t] * 9000"},
    "shell": {
        "kind": "shell",
        "env": {"T": "{{ keychain.api.token }}"},
        "command": "echo \"$T\"; printf %s \"$T\" | base64 -w0 >&2; exit 3",
    },
    "fetch": {"kind": "http", "url": "{web}/echo?access_token={{ keychain.api.token | urlencode }}", "auth": "api"},
    "refused": {"kind": "http", "method": "POST", "url": "{web}/status/401", "auth": "api", "json": {"p": "{{ keychain.db.password }}"}},
    "closed": {"kind": "http", "url": "http://127.0.0.1:1/{{ keychain.api.token | urlencode }}", "auth": "api"},
    "hooked": {"kind": "http", "method": "POST", "url": "{{ keychain.hook.url }}"},
    "sql": {"kind": "duckdb", "query": "SELECT '{{ keychain.db.password }}' AS p"},
    "bad_sql": {"kind": "duckdb", "query": "SELECT {{ keychain.db.password }} FROM"},
    "pg": {"kind": "postgres", "auth": "db", "query": "SELECT 1"},
    "move": {
        "kind": "transfer",
        "source": {"kind": "postgres", "auth": "db", "query": "SELECT 1 AS n"},
        "target": {"kind": "file", "path": "out.csv"},
    },
    "secret": {"kind": "secrets", "secret": "api"},
    "same": {"kind": "noop", "result": "{{ keychain.api.token }}"},
    "note": {"kind": "outbox", "topic": "t", "url": "{web}/status/500", "auth": "api", "payload": {"n": 1}},
}  # fmt: skip
GO_ON = {"policy": {"rules": [{"else": {"then": {"do": "continue"}}}]}}
RETRY = {
    "policy": {
        "rules": [{"when": "{{ outcome.status == 'error' }}", "then": {"do": "retry", "attempts": 2, "delay": 0}}]
    }
}


class Echo(Web):
    """A server that answers with the request it got."""

    def reply(self, handler: Any) -> None:
        if handler.path.startswith("/echo"):
            self.pages[handler.path.partition("?")[0]] = {"path": handler.path, "headers": dict(handler.headers)}
        super().reply(handler)


def play(web: str) -> str:
    steps: list[dict[str, Any]] = []
    names = [*TASKS, "child", "dead"]
    for at, name in enumerate(names):
        after = {"next": names[at + 1]} if at + 1 < len(names) else {}
        if name in TASKS:
            task = {**TASKS[name], "spec": GO_ON}
            steps.append({"step": name, "tool": [{name: task}], **after})
        elif name == "dead":
            task = {**TASKS["raises"], "spec": RETRY}
            steps.append({"step": name, "loop": {"in": [1], "iterator": "n"}, "tool": [{"t": task}]})
        else:
            steps.append({"step": name, "tool": {"kind": "playbook", "path": "test/inner"}, **after})
    text = "".join(f"  - {json.dumps(step)}\n" for step in steps)
    return playbook(text, "outer", keychain=[{"name": name} for name in CREDENTIALS]).replace("{web}", web)


INNER = playbook(
    f"  - {json.dumps({'step': 'one', 'tool': [{'t': TASKS['prints']}]})}\n",
    "inner",
    keychain=[{"name": "api"}, {"name": "db"}],
)


def encodings(secret: str) -> dict[str, bytes]:
    data = secret.encode()
    found = {
        "plain": data,
        "base64": base64.b64encode(data).rstrip(b"="),
        "url": quote(secret, safe="").encode(),
        "path": quote(secret).encode(),
        "hex": data.hex().encode(),
        "json": json.dumps(secret)[1:-1].encode(),
    }
    return {name: one[: len(one) - len(one) % 4] if name == "base64" else one for name, one in found.items()}


def stored(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder, unpacked, except the key of the credentials."""
    found = {}
    for file in folder.rglob("*"):
        if file.is_file() and not file.name.endswith(".key"):
            data = file.read_bytes()
            found[file.name] = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return found


def hits(places: dict[str, bytes]) -> list[tuple[str, str, str]]:
    wanted = {(secret, name): one for secret in (TOKEN, PASSWORD, HOOK) for name, one in encodings(secret).items()}
    return [(place, *what) for place, data in places.items() for what, one in wanted.items() if one in data]


async def ran(served: Served, web: str) -> str:
    for name, data in CREDENTIALS.items():
        text = json.dumps(data).replace("{web}", web)
        await served.json("PUT", f"/api/credentials/{name}", {"data": json.loads(text)})
    await served.register(INNER)
    started = await served.start(play(web))
    await served.until(started, "completed", "failed", "partial")
    return started


async def test_no_canary_is_written_or_shown(tmp_path: Path) -> None:
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(_safe_lines()("%(message)s"))
    root, noetl_log = logging.getLogger(), logging.getLogger("noetl")
    before = noetl_log.level
    root.addHandler(handler)
    noetl_log.setLevel(logging.DEBUG)
    try:
        with closing(Echo()) as web:
            key = ServerSettings(key=new_key())
            async with in_process(tmp_path / "store", key) as served, served.embedded.run_worker(""):
                started = await ran(served, web.url)
                shown = await read_everything(served, started)
                (child,) = (await served.json("GET", f"/api/executions?parent={started}"))["executions"]
                shown |= await read_everything(served, child["execution_id"])
            sent = " ".join(one.path + json.dumps(one.headers) + one.body.decode() for one in web.asked)
    finally:
        root.removeHandler(handler)
        noetl_log.setLevel(before)
    assert [one for one in (HOOK, quote(TOKEN), PASSWORD) if one not in sent] == []  # they were used
    store = str(tmp_path / "store" / "noetl.db")
    for command in ("events", "logs", "status", "explain", "replay", "record"):
        more = () if command == "record" else ("--json",)
        done = noetl(command, started, "--store", store, *more, cwd=tmp_path, stdin=None)
        shown[command] = done.out + done.err
    for words in (("dlq", "list"), ("outbox", "list"), ("runs",), ("credential", "list")):
        place = ("--store", store) if words[0] != "credential" else ("--server", store)
        done = noetl(*words, *place, "--json", cwd=tmp_path, stdin=None)
        shown[" ".join(words)] = done.out + done.err
    letter = re.search(r'"message_id":"([^"]+)"', shown["dlq list"])
    assert letter is not None, shown["dlq list"]
    shown["dlq show"] = noetl("dlq", "show", letter[1], "--store", store, cwd=tmp_path, stdin=None).out
    places = (
        {name: text.encode() for name, text in shown.items()} | stored(tmp_path) | {"log": lines.getvalue().encode()}
    )
    assert hits(places) == []
    assert [name for name in ("events", "record", "dlq show", "logs") if MASK not in shown[name]] == []
    for name in TASKS:
        assert f'"{name}' in shown["events"], name


async def test_the_search_finds_each_encoding(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(gzip.compress(b" ".join(encodings(TOKEN).values())))
    assert {name for _, _, name in hits(stored(tmp_path))} == set(encodings(TOKEN))
