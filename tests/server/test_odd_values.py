"""Odd values at every place: an error of the task or the request, nothing worse.

Text without a character for it, NUL, numbers that JSON lacks or Python cannot write, deep data, failing functions: none
may leave an execution that never ends, an answer of 500, or an error of the worker itself. Every value goes to every
place in one process on SQLite; the other forms take a share by default, and all of them under `make chaos`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.server.api import endpoints
from noetl.server.auth.vault import new_key
from noetl.server.http.endpoint import Endpoint
from noetl.settings import ServerSettings
from tests.client.working import working
from tests.databases import empty_database
from tests.server.serving import WAITS, Served, in_process, listening, playbook

pytestmark = pytest.mark.asyncio

TEMPLATES = {
    "surrogate": r"{{ '\ud800' }}",
    "nul": r"{{ 'a\x00b' }}",
    "whole": "{{ 2 ** 60000 }}",
    "key": "{{ {2 ** 60000: 1} }}",
    "infinite": "{{ 1e308 * 10 }}",
    "no number": "{{ [1e308 * 10 - 1e308 * 10] }}",
    "large": "{{ 1e300 }}",
    "pattern": "{{ '2020' | to_datetime('%Y%Y') }}",
    "date": "{{ '99999-01-01' | to_datetime }}",
    "deep": "{{ ('[' * 300 + ']' * 300) | fromjson }}",
    "digits": "{{ ('9' * 5000) | fromjson }}",
    "half": r"""{{ '"\\ud800"' | fromjson }}""",
}
CODE = {
    "surrogate": r"'\ud800'",
    "nul": r"'a\x00b'",
    "whole": "2 ** 60000",
    "large": "10 ** 400",
    "infinite": "float('inf')",
    "no number": "float('nan')",
    "key": "{2 ** 60000: 1}",
    "half key": r"{'\ud800': 1}",
    "nul key": r"{'a\x00': 1}",
    "tuple key": "{(1, 2): 1}",
    "deep": "__import__('functools').reduce(lambda a, _: [a], range(900), 1)",
    "nearly deep": "__import__('functools').reduce(lambda a, _: [a], range(190), 1)",
    "circle": "(lambda a: a.append(a) or a)([])",
    "raises": "type('D', (dict,), {'items': lambda self: 1 // 0})(a=1)",
}
WRONG = ("the worker failed", "TOOL_RAISED", "unforeseen", "Undecided", "POISON", "could not decide")
ENDED = ("completed", "failed", "partial", "cancelled")


def step(tool: dict[str, Any], more: str = "") -> str:
    return f"  - step: one\n    tool: {json.dumps(tool)}\n{more}"


def template_places(text: str) -> Iterator[tuple[str, str]]:
    then = "  - step: two\n    tool: {kind: noop, result: '{{ ctx.x | default(1) }}'}\n"
    rules = {"rules": [{"when": text, "then": {"do": "fail"}}, {"else": {"then": {"do": "continue"}}}]}
    sets = {"rules": [{"else": {"then": {"do": "continue", "set": {"ctx.x": text}}}}]}
    inner = text.replace("{{", "{{ [").replace("}}", "] }}")
    arc = f"    next: {{arcs: [{{step: two, when: {json.dumps(text)}}}, {{step: two}}]}}\n"
    args = f"    next: {{arcs: [{{step: two, args: {{x: {json.dumps(text)}}}}}]}}\n"
    yield "result", step({"kind": "noop", "result": text})
    yield "inside", step({"kind": "noop", "result": {"a": [text, f"x {text}"]}})
    yield "input", step({"kind": "python", "input": {"a": text}, "code": "result = repr(a)[:9]"})
    yield "when", step({"kind": "noop"}, arc + then)
    yield "args", step({"kind": "noop"}, args + then)
    yield "set", step({"kind": "noop", "result": 1}, f"    set: {{ctx.x: {json.dumps(text)}}}\n    next: two\n{then}")
    yield "loop", f"  - step: one\n    loop: {{in: {json.dumps(text)}, iterator: x}}\n    tool: {{kind: noop}}\n"
    items = f"  - step: one\n    loop: {{in: {json.dumps(inner)}, iterator: x"
    yield "items", items + "}\n    tool: {kind: noop, result: '{{ x }}'}\n"
    yield "item limit", items + f", item_timeout_ms: {json.dumps(text)}}}\n    tool: {{kind: noop}}\n"
    yield "shell", step({"kind": "shell", "command": ["echo", text], "env": {"A": text}})
    nowhere = {"kind": "http", "method": "POST", "url": "http://127.0.0.1:1/"}
    yield "url", step({**nowhere, "url": f"http://127.0.0.1:1/{text}"})
    yield "header", step({**nowhere, "headers": {"X-A": text}})
    yield "body", step({**nowhere, "json": {"a": text}, "params": {"a": text}})
    yield "form", step({**nowhere, "form": {"a": text}})
    yield "signal", step({"kind": "wait", "signal": text, "timeout_ms": 50})
    yield "limit", step({"kind": "noop", "timeout_ms": text})
    yield "rule", step({"kind": "noop", "spec": {"policy": rules}})
    yield "rule set", step({"kind": "noop", "spec": {"policy": sets}})
    yield "sql", step({"kind": "duckdb", "query": "SELECT $a AS a", "params": {"a": text}})
    yield "sql text", step({"kind": "duckdb", "query": f"SELECT '{text}' AS a"})


def cells(address: str) -> Iterator[tuple[str, str]]:
    deep = "(repeat('[', 3000) || repeat(']', 3000))::json"
    digits = "'{\"a\": 1e4999}'::jsonb"
    for cell in (digits, "10::numeric ^ 5000", "'NaN'::float8", "'infinity'::date", "'0044-01-01 BC'::date", deep):
        tool = {"kind": "postgres", "auth": {"dsn": address}, "query": f"SELECT {cell} AS a"}
        yield f"cell {cell}", step(tool, "    set: {ctx.x: '{{ one }}'}\n")


def code_places(code: str) -> Iterator[tuple[str, str]]:
    loop = "  - step: two\n    loop: {in: '{{ one }}', iterator: x}\n    tool: {kind: noop, result: '{{ x }}'}\n"
    yield "python result", step({"kind": "python", "code": f"result = {code}"})
    yield "python list", step({"kind": "python", "code": f"result = [{code}]"}, "    next: two\n" + loop)
    sets = "    set: {ctx.x: '{{ one }}'}\n"
    yield "python ctx", step({"kind": "python", "code": f"result = {code}"}, sets)
    yield "python error", step({"kind": "python", "code": f"raise ValueError({code})"})
    yield "python details", step({"kind": "python", "code": f"raise FatalError('x', details={{'a': {code}}})"})
    after = f"e = FatalError('x')\ne.retry_after = {code}\nraise e"
    yield "python wait", step({"kind": "python", "code": after})
    yield "python print", step({"kind": "python", "code": f"print({code})"})


@pytest.fixture(params=["sqlite", "postgres"])
def more(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        yield {} if request.param == "sqlite" else {"database": stack.enter_context(empty_database())}


@asynccontextmanager
async def one_process(folder: Path, **more: Any) -> AsyncIterator[Served]:
    async with in_process(folder, **more) as served, served.embedded.run_worker(""):
        yield served


@asynccontextmanager
async def over_http(folder: Path, **more: Any) -> AsyncIterator[Served]:
    async with listening(folder, **more) as served, working(folder / "worker", served.url, capacity=16):
        yield served


async def trouble(served: Served, name: str, workflow: str) -> str | None:
    """Run a playbook; return what is wrong with its end, or None."""
    content = playbook(workflow, f"n{abs(hash(name))}", workload={"nul": "a\0b"})
    made = await served.http.post("/api/catalog", json={"content": content})
    if made.is_success:
        made = await served.http.post("/api/execute", json={"path": made.json()["path"]})
    if made.status_code >= 500:
        return f"{name}: {made.status_code}"
    if not made.is_success:
        return None
    found = await served.until(made.json()["execution_id"], *ENDED)
    events = await served.http.get(f"/api/executions/{found['execution_id']}/events")
    text = json.dumps(found) + events.text
    return next((f"{name}: {word}: {found.get('error')}" for word in WRONG if word in text), None)


SHARE = [11, pytest.param(1, marks=pytest.mark.chaos)]  # one of 11, of all places, where another form takes all


@pytest.mark.parametrize("share", SHARE)
@pytest.mark.parametrize("running", [one_process, over_http])
async def test_an_odd_value_is_an_error_of_its_task_at_most(
    tmp_path: Path, more: dict[str, Any], running: Callable[..., AbstractAsyncContextManager[Served]], share: int
) -> None:
    cases = {f"{value} in {place}": flow for value, text in TEMPLATES.items() for place, flow in template_places(text)}
    cases |= {f"{value} in {place}": flow for value, code in CODE.items() for place, flow in code_places(code)}
    if running is over_http or more:
        cases = dict(list(cases.items())[::share])
    cases |= dict(cells(more["database"])) if "database" in more else {}
    at_once = asyncio.Semaphore(16)
    async with running(tmp_path, **more) as served:

        async def run(name: str, workflow: str) -> str | None:
            async with at_once:
                return await trouble(served, name, workflow)

        found = await asyncio.gather(*(run(*case) for case in cases.items()))
    assert [one for one in found if one is not None] == []


ODD = [
    r'"\ud800"', r'"a\u0000b"', "NaN", "1e999", "9" * 5_000, "1" + "0" * 400, "[" * 5_000 + "]" * 5_000,
    r'{"\ud800": 1}', r'{"\u0000": 1}', '"\ufffe\u202e\\u001b[31m"',
]  # fmt: skip
NAMES = ["a%00b", "%ED%A0%80", "%E2%80%AE%1b", "9" * 400, "-1", "1e999", "NaN"]
HERE = "\u0001here"


def with_odd(data: Any, odd: str) -> Iterator[str]:
    """Yield a body with an odd value in place of each of its values, and beside them."""
    for place in _places(data):
        yield json.dumps(place).replace(json.dumps(HERE), odd)


def _places(data: Any) -> Iterator[Any]:
    yield HERE
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        for inner in _places(data[key]):
            made = data.copy()
            made[key] = inner
            yield made
    if isinstance(data, dict):
        yield {**data, "more": HERE}


def targets(endpoint: Endpoint, execution_id: str) -> Iterator[str]:
    """Yield paths of a route with an odd name for each parameter of path and query."""
    known = endpoint.path.replace("{execution_id}", execution_id)
    for name in NAMES:
        if "{" in endpoint.path:
            yield re.sub(r"\{[^}]*\}", name, endpoint.path)
            yield re.sub(r"\{[^}]*\}", name, known)
        for field in msgspec.structs.fields(endpoint.query) if endpoint.query is not None else ():
            yield f"{re.sub(r'{[^}]*}', 'x', known)}?{field.encode_name}={name}"


@pytest.mark.parametrize("share", SHARE)
async def test_an_odd_value_in_a_request_is_refused_or_kept(tmp_path: Path, more: dict[str, Any], share: int) -> None:
    bad: list[str] = []
    at_once = asyncio.Semaphore(16)  # some wait for work or for an end
    async with in_process(tmp_path, ServerSettings(key=new_key()), **more) as served:
        path = await served.register(WAITS)

        async def send(method: str, url: str, content: str = "", **headers: str) -> None:
            given: Any = {"content": content.encode("utf-8", "surrogatepass")} if content else {}
            kinds = {"Content-Type": "application/json", **headers}
            async with at_once:
                answer = await served.http.request(method, url, headers=kinds, timeout=5, **given)
            if answer.status_code >= 500:
                bad.append(f"{method} {url[:80]} {content[:80]}: {answer.status_code} {answer.text}")

        started = (await served.json("POST", "/api/execute", {"path": path}))["execution_id"]
        for endpoint in endpoints():
            if endpoint.gives == "text/event-stream":
                continue
            body = "{}" if endpoint.body is not None else ""
            at = re.sub(r"\{[^}]*\}", "go", endpoint.path.replace("{execution_id}", started))
            orders = [(url, body) for url in targets(endpoint, started)]
            for odd in ODD if endpoint.body is not None else ():
                orders += [(at, given) for given in with_odd(endpoint.example or {}, odd)]
            await asyncio.gather(*(send(endpoint.method, *order) for order in orders[:: share if more else 1]))
        for name in (*NAMES, b"a\xff\xed\xa0\x80"):
            headers: Any = {"Idempotency-Key": name}
            await send("POST", "/api/execute", json.dumps({"path": path}), **headers)
    assert bad == []
