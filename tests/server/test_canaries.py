"""No secret is in any store, answer, stream, log, metric, cassette or print-out.

Canaries go through every kind of the registry, by success, error, retry, redrive, dead letter, child, notification and
outbox, on SQLite and on PostgreSQL. They are searched in every row and file that was written, in everything that was shown, and
in everything that exports and traces sent, in five encodings. A kind that this version cannot run is started, and refused.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import logging
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import psycopg
import pytest
from psycopg import sql

from noetl.cli.runtime.terminal import escaped
from noetl.masking.readers import ReaderMask
from noetl.masking.values import MASK
from noetl.observe.logs.lines import ConsoleLines, JsonLines
from noetl.server.auth.vault import new_key
from noetl.settings import ExportSettings, ServerSettings, TracingSettings
from noetl.stores.postgres.archive import read_archive, write_archive
from noetl.stores.postgres.database import connect
from noetl.tools import kinds
from tests.acceptance.run import noetl
from tests.databases import fresh_database
from tests.server.api.test_masking import read_everything
from tests.server.serving import Served, happens, in_process, playbook
from tests.tools.web import Web

TOKEN = 'c4nary/t0ken+"ä"-7f3e9b1c'
PASSWORD = "c4nary&pass<word>-52d80aa4"
HOOK = "c4naryHookPart0193bd"
ACCESS = "c4nary.access~T0ken/+e8811f"  # of a token server
CREDENTIALS = {
    "api": {"token": TOKEN},
    "db": {"host": "127.0.0.1", "port": 1, "user": "u", "password": PASSWORD, "dbname": "d"},
    "hook": {"url": "{web}/hooks/" + HOOK},
    "client": {"token_url": "{web}/token", "client_id": "noetl", "client_secret": PASSWORD},
}
_LOGGED = {"step_done", "plugin_done", "sink_done", "sink_write", "task_dlq"}  # lines that tell of the canaries
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
    "told": {"kind": "outbox", "topic": "t", "url": "{web}/status/500", "payload": {"p": "{{ keychain.db.password }}"}},
    "hooks": {"kind": "outbox", "topic": "t", "url": "{{ keychain.hook.url }}", "headers": {"x": "{{ keychain.api.token }}"}},
    "granted": {"kind": "http", "url": "{web}/echo", "auth": "crm"},
    "script": {
        "kind": "script", "interpreter": "sh", "env": {"T": "{{ keychain.api.token }}"},
        "script": {"source": {"type": "inline"}, "content": "cat; echo $1; printf %s \"$T\" | base64 -w0; exit 4"},
        "arguments": ["{{ keychain.db.password }}"], "input": {"t": "{{ keychain.api.token }}"},
    },
    "no_script": {"kind": "script", "uri": "./{{ keychain.api.token }}.sh"},
    "fetched": {"kind": "script", "uri": "{web}/status/404?t={{ keychain.api.token | urlencode }}", "interpreter": "sh"},
    "put": {"kind": "artifact", "action": "put", "ref": "noetl://canary/a", "data": {"t": ["{{ keychain.api.token }}"]}},
    "put_text": {"kind": "artifact", "action": "put", "ref": "noetl://canary/b", "data": "is {{ keychain.db.password }}",
                 "store": {"kind": "file", "compression": "gzip"}},
    "put_name": {"kind": "artifact", "action": "put", "ref": "noetl://canary/{{ keychain.api.token | urlencode }}", "data": 1},
    "get": {"kind": "artifact", "ref": "noetl://canary/{{ keychain.api.token }}"},
    "get_file": {"kind": "artifact", "ref": "file://{{ keychain.db.password }}"},
    "resolved": {"kind": "resolve", "ref": "{{ keychain.api.token }}"},
    "unresolved": {"kind": "resolve", "ref": "noetl://{{ keychain.db.password }}"},
    "slept": {"kind": "sleep", "until": "{{ keychain.api.token }}"},
    "napped": {"kind": "sleep", "seconds": 0, "input": {"t": "{{ keychain.api.token }}"}},
    "waited": {"kind": "wait", "signal": "{{ keychain.api.token }}", "timeout_s": 0, "input": {"p": "{{ keychain.db.password }}"}},
    "called": {"kind": "workbook", "task": "shared", "input": {"t": "{{ keychain.api.token }}"}},
    "given": {"kind": "playbook", "path": "test/inner", "input": {"t": "{{ keychain.api.token }}"}},
    "unknown": {"kind": "playbook", "path": "test/{{ keychain.db.password }}"},
}  # fmt: skip
# Kinds that this version describes and cannot run: their playbooks are refused, and the refusal is searched.
NOT_BUILT: dict[str, dict[str, Any]] = {
    "nats": {"subject": "s", "auth": "api", "data": "{{ keychain.api.token }}"},
    "mcp": {"server": "{web}/{{ keychain.api.token }}", "tool": "t", "auth": "api"},
    "snowflake": {"auth": "db", "query": "SELECT '{{ keychain.db.password }}'"},
    "container": {"image": "i:1", "auth": "api", "env": {"T": "{{ keychain.api.token }}"}},
    "ducklake": {"auth": "db", "catalog": "{{ keychain.hook.url }}", "query": "SELECT 1"},
}
WORKBOOK = [{"name": "shared", "kind": "python", "input": {"t": None, "p": "{{ keychain.db.password }}"},
             "code": "print(t, p)\nraise ValueError(t + p)"}]  # fmt: skip
GO_ON = {"policy": {"rules": [{"else": {"then": {"do": "continue"}}}]}}
RETRY = {
    "policy": {
        "rules": [{"when": "{{ outcome.status == 'error' }}", "then": {"do": "retry", "attempts": 2, "delay": 0}}]
    }
}


class Echo(Web):
    """A server that answers with the request it got."""

    def reply(self, handler: Any) -> None:
        if handler.path == "/token":
            self.pages["/token"] = {"access_token": ACCESS, "token_type": "Bearer", "expires_in": 3600}
        if handler.path.startswith("/echo"):
            self.pages[handler.path.partition("?")[0]] = {"path": handler.path, "headers": dict(handler.headers)}
        super().reply(handler)


class Table(Web):
    """A ClickHouse server that has the table and keeps what is inserted."""

    def reply(self, handler: Any) -> None:
        content = b"1" if self.asked[-1].body.startswith(b"EXISTS") else b""
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


def bodies(web: Web, path: str = "") -> bytes:
    return b"\n".join(unpacked(one.body) for one in web.asked if one.path.startswith(path))


def play(web: str) -> str:
    steps: list[dict[str, Any]] = []
    names = [*TASKS, "child", "broken", "dead"]
    for at, name in enumerate(names):
        after = {"next": names[at + 1]} if at + 1 < len(names) else {}
        if name in TASKS:
            task = {**TASKS[name], "spec": GO_ON}
            steps.append({"step": name, "tool": [{name: task}], **after})
        elif name == "dead":
            task = {**TASKS["raises"], "spec": RETRY}
            steps.append({"step": name, "loop": {"in": [1], "iterator": "n"}, "tool": [{"t": task}]})
        else:
            path = "test/inner" if name == "child" else "test/fails"
            steps.append({"step": name, "tool": [{"t": {"kind": "playbook", "path": path, "spec": GO_ON}}], **after})
    text = "".join(f"  - {json.dumps(step)}\n" for step in steps)
    named: list[dict[str, Any]] = [{"name": name} for name in CREDENTIALS]
    named.append({"name": "crm", "kind": "oauth2", "credential": "client", "scope": "global"})
    return playbook(text, "outer", keychain=named, workbook=WORKBOOK).replace("{web}", web)


def single(name: str, task: dict[str, Any]) -> str:
    text = f"  - {json.dumps({'step': 'one', 'tool': [{'t': task}]})}\n"
    return playbook(text, name, keychain=[{"name": "api"}, {"name": "db"}, {"name": "hook"}])


def encodings(secret: str) -> dict[str, bytes]:
    data = secret.encode()
    found = {
        "plain": data,
        "base64": base64.b64encode(data).rstrip(b"="),
        "url": quote(secret, safe="").encode(),
        "path": quote(secret).encode(),
        "hex": data.hex().encode(),
        "json": json.dumps(secret)[1:-1].encode(),
        "json in UTF-8": json.dumps(secret, ensure_ascii=False)[1:-1].encode(),
        "html": escape(secret).encode(),
    }
    return {name: one[: len(one) - len(one) % 4] if name == "base64" else one for name, one in found.items()}


def unpacked(data: bytes) -> bytes:
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def stored(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder, unpacked, except the key of the credentials."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(".key")]
    return {str(file.relative_to(folder)): unpacked(file.read_bytes()) for file in files}


def cells(rows: list[tuple[Any, ...]]) -> bytes:
    """Return the cells of rows as bytes: texts and blobs as they are, unpacked."""
    found = [one if isinstance(one, bytes | str) else json.dumps(one, default=str) for row in rows for one in row]
    return b"\n".join(unpacked(one) if isinstance(one, bytes) else one.encode() for one in found)


def tables(store: str) -> dict[str, bytes]:
    """Return every row of every table of a store, as bytes."""
    if not store.startswith("postgresql:"):
        with closing(sqlite3.connect(store)) as file:
            names = [name for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            return {f"table {name}": cells(file.execute(f'SELECT * FROM "{name}"').fetchall()) for name in names}
    with psycopg.connect(store) as opened:
        found = opened.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'noetl'").fetchall()
        read = sql.SQL("SELECT * FROM noetl.{}")
        return {
            f"table {name}": cells(opened.execute(read.format(sql.Identifier(name))).fetchall()) for (name,) in found
        }


def hits(places: dict[str, bytes]) -> list[tuple[str, str, str]]:
    wanted = {
        (secret, name): one for secret in (TOKEN, PASSWORD, HOOK, ACCESS) for name, one in encodings(secret).items()
    }
    return [(place, *what) for place, data in places.items() for what, one in wanted.items() if one in data]


@contextmanager
def logged() -> Iterator[io.StringIO]:
    """Collect what this process logs, at the finest level, as its log shows it."""
    lines, mask = io.StringIO(), ReaderMask()
    root, noetl_log = logging.getLogger(), logging.getLogger("noetl")
    before, handlers = noetl_log.level, [logging.StreamHandler(lines), logging.StreamHandler(lines)]
    for handler, form in zip(
        handlers, (JsonLines(lambda: mask, escaped), ConsoleLines(lambda: mask, escaped)), strict=True
    ):
        handler.setFormatter(form)
        root.addHandler(handler)
    noetl_log.setLevel(logging.DEBUG)
    try:
        yield lines
        assert {
            json.loads(line).get("event") for line in lines.getvalue().splitlines() if line.startswith("{")
        } >= _LOGGED
    finally:
        for handler in handlers:
            root.removeHandler(handler)
        noetl_log.setLevel(before)


async def prepare(served: Served, web: str) -> None:
    for name, data in CREDENTIALS.items():
        text = json.dumps(data).replace("{web}", web)
        await served.json("PUT", f"/api/credentials/{name}", {"data": json.loads(text)})
    about = {"name": "n", "path": "test/*", "on": ["failed", "dead_letter"], "channel": "webhook", "credential": "hook"}
    await served.json("POST", "/api/notifications", about, status=201)
    await served.register(single("inner", TASKS["prints"]))
    await served.register(single("fails", TASKS["raises"]))


async def ran(served: Served, web: Echo) -> tuple[str, dict[str, str]]:
    """Run everything; return the execution and what the API shows of it."""
    await prepare(served, web.url)
    started = await served.start(play(web.url))
    await served.until(started, "completed", "failed", "partial")
    (letter,) = (await served.json("GET", f"/api/dlq?execution_id={started}"))["letters"]
    await served.json("POST", f"/api/dlq/{letter['message_id']}/replay", {})
    await happens(lambda: any(b"dead letter" in one.body for one in web.asked), "a notification")
    shown = await read_everything(served, started)
    for child in (await served.json("GET", f"/api/executions?parent={started}"))["executions"]:
        shown |= await read_everything(served, child["execution_id"])
    for kind, fields in NOT_BUILT.items():
        path = await served.register(single(f"no_{kind}", {"kind": kind, **fields}))
        answer = await served.http.post("/api/execute", json={"path": path})
        assert answer.status_code == 422, answer.text
        shown[f"refusal of {kind}"] = answer.text
    return started, shown


def commands(started: str, store: str, folder: Path) -> dict[str, str]:
    """Return what commands print about an execution, and what they export."""
    shown = {}

    def run(*words: str, place: str = "--store") -> str:
        done = noetl(*words, place, store, cwd=folder, stdin=None)
        shown[" ".join(words[:2])] = done.out + done.err
        return done.out

    for command in ("events", "logs", "status", "explain", "replay"):
        run(command, started, "--json")
    run("trace", started, "--json")
    run("record", started)
    for words in (("dlq", "list"), ("outbox", "list"), ("runs",), ("queue",)):
        run(*words, "--json")
    run("credential", "list", "--json", place="--server")
    run("audit", "export")
    letter = re.search(r'"message_id":"([^"]+)"', shown["dlq list"])
    assert letter is not None, shown["dlq list"]
    run("dlq", "show", letter[1])
    return {name.removesuffix(f" {started}"): text for name, text in shown.items()}


async def exported(started: str, store: str, folder: Path) -> bytes:
    """Return the events of an execution from an archive or a backup."""
    if store.startswith("postgresql:"):
        connection = await connect(store)
        async with connection.transaction():
            await write_archive(connection, folder / "log.parquet", 0, 1 << 62)
        await connection.close()
        return msgspec.json.encode(read_archive(folder / "log.parquet", started))
    done = noetl("admin", "backup", "backup.db", "--store", store, cwd=folder, stdin=None)
    assert done.code == 0, done.err
    return tables(str(folder / "backup.db"))["table event_log"]


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    return {} if request.param == "sqlite" else {"database": fresh_database("canaries")}


@pytest.mark.asyncio
async def test_no_canary_is_written_or_shown(tmp_path: Path, database: dict[str, str]) -> None:
    folder, key = tmp_path / "store", ServerSettings(key=new_key())
    with logged() as lines, closing(Echo()) as web, closing(Table()) as table, closing(Web()) as receiver:
        export = ExportSettings(
            clickhouse_url=table.url, otlp_url=receiver.url, openlineage_url=f"{receiver.url}/lineage"
        )
        more: dict[str, Any] = {"export": export, "tracing": TracingSettings(sample_rate=1, endpoint=receiver.url)}
        async with in_process(folder, key, **more, **database) as served, served.embedded.run_worker(""):
            started, shown = await ran(served, web)
            last = (await served.services.store.read(started))[-1].event_id.encode()
            await happens(lambda: last in bodies(table), "the last event in the table")
            await happens(lambda: last in bodies(receiver, "/v1/logs"), "the last event in the log of the receiver")
    sent = " ".join(one.path + json.dumps(one.headers) + one.body.decode() for one in web.asked)
    assert [one for one in (HOOK, quote(TOKEN), PASSWORD, ACCESS) if one not in sent] == []  # they were used
    told = [one.body for one in web.asked if one.path.startswith("/hooks/") and b"dead letter" in one.body]
    store = database.get("database", str(folder / "noetl.db"))
    shown |= commands(started, store, tmp_path)
    places = {name: text.encode() for name, text in shown.items()} | tables(store)
    places |= {"export": await exported(started, store, tmp_path), "notification": b"".join(told)}
    places |= stored(tmp_path) | {"log": lines.getvalue().encode(), "clickhouse": bodies(table)}
    places |= {name: bodies(receiver, name) for name in ("/v1/traces", "/v1/logs", "/lineage")}
    assert hits(places) == []
    assert [name for name in ("/v1/traces", "/v1/logs", "/lineage") if not places[name]] == []
    assert MASK.encode() in places["export"]
    assert MASK.encode() in places["clickhouse"]
    assert MASK.encode() in places["notification"]
    assert [name for name in ("events", "record", "dlq show", "logs") if MASK not in shown[name]] == []
    assert MASK.encode() in places["table log" if database else "table event_log"]
    for name in TASKS:
        assert f'"{name}' in shown["events"], name


def test_every_kind_of_the_registry_has_a_canary() -> None:
    assert {task["kind"] for task in TASKS.values()} | {"playbook"} == {name for name in kinds() if kinds()[name].built}
    assert set(NOT_BUILT) == {name for name in kinds() if not kinds()[name].built}


@pytest.mark.asyncio
async def test_the_search_finds_each_encoding(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(gzip.compress(b" ".join(encodings(TOKEN).values())))
    assert {name for _, _, name in hits(stored(tmp_path))} == set(encodings(TOKEN))


@pytest.mark.asyncio
async def test_the_search_finds_a_canary_in_a_row(tmp_path: Path, database: dict[str, str]) -> None:
    packed = gzip.compress(TOKEN.encode())
    if database:
        store = database["database"]
        with psycopg.connect(store) as opened:
            opened.execute("INSERT INTO noetl.result VALUES (%s, %s, %s)", ("r", packed, "{}"))
    else:
        store = str(tmp_path / "noetl.db")
        with closing(sqlite3.connect(store)) as file, file:
            file.execute("CREATE TABLE result (data BLOB)")
            file.execute("INSERT INTO result VALUES (?)", (packed,))
    assert {(place, name) for place, _, name in hits(tables(store))} == {("table result", "plain")}
