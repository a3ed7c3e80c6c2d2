"""The API shows no value under the name of a secret; tasks and the log have it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import checksum
from noetl.masking.values import MASK
from noetl.server.api import endpoints
from tests.server.serving import in_process, playbook

pytestmark = pytest.mark.asyncio
SECRET = "canary-in-a-workload-17"
PLAY = playbook(
    """\
  - step: login
    tool:
      kind: python
      input: {password: "{{ workload.password }}", iban: "{{ workload.iban }}"}
      code: |
        print("hello")
        result = {"size": len(password), "access_token": password, "iban": iban, "note": {"api_key": [password]}}
    set: {session: "{{ output.data.access_token }}"}
    next:
      - {step: get_token, when: "{{ workload.key == 'x' or workload.password | length > 2 }}"}
  - step: get_token
    tool: {kind: python, input: {t: "{{ login.access_token }}"}, code: "result = {'rows': ['x'] * 40000, 'token': t}"}
    next: bad
  - step: bad
    loop: {in: [1], iterator: n}
    tool: {kind: python, input: {secret: "{{ ctx.session }}"}, code: "assert False, 'no'"}
""",
    "masked",
    workload={"password": "", "iban": "", "key": "", "next_token": ""},
)
GIVEN = {"password": SECRET, "iban": SECRET, "key": SECRET, "next_token": "page-2"}


async def read_everything(served: Any, started: str) -> dict[str, str]:
    """Return the answer of every route that reads, by its path."""
    paths = {"{execution_id}": started, "{name}": "session", "{worker_id}": "w", "{number}": "1"}
    letters = (await served.json("GET", "/api/dlq"))["letters"]
    paths |= {"{message_id}": letters[0]["message_id"] if letters else "none", "{schedule_id}": "s", "{playbook}": "p"}
    found = {}
    for one in endpoints():
        if one.method != "GET" or one.role == "worker" or one.path == "/api/executions/stream":
            continue
        path = one.path
        for name, value in paths.items():
            path = path.replace(name, value)
        for query in ("", "?diff=1", "?path=test/masked"):
            found[f"{path}{query}"] = (await served.http.get(path + query)).text
    return found


async def test_no_route_shows_a_value_under_the_name_of_a_secret(tmp_path: Path) -> None:
    async with in_process(tmp_path, redact_keys=("iban",)) as served, served.embedded.run_worker(""):
        started = await served.start(PLAY, payload=GIVEN)
        ended = await served.until(started, "completed", "failed", "partial")
        shown = await read_everything(served, started)
        stored = await served.json("GET", f"/api/executions/{started}/state")
        ref = stored["state"]["ended"]["get_token"]["result"]["ref"]
        result = await served.http.get("/api/results/resolve", params={"ref": ref})
        asked = {
            "execution_id": started,
            "template": "{{ workload.password }} {{ ctx.session }} {{ workload | tojson }}",
        }
        shown["rendered"] = (await served.http.post("/context/render", json=asked)).text
        shown["result"] = result.text
        assert [path for path, text in shown.items() if SECRET in text] == []
        log = await served.services.store.read(started)
    assert ended["workload"] == {"password": MASK, "iban": MASK, "key": MASK, "next_token": "page-2"}
    assert ended["ctx"] == {"session": MASK}
    assert ended["steps"]["get_token"]["done"] == 1
    assert result.json() == {"rows": ["x"] * 40000, "token": "*" * len(SECRET)}
    assert MASK in shown["rendered"]
    events = shown[f"/api/executions/{started}/events/stream"]
    assert events.count("\nevent: ") >= len(log) - 1
    done = json.loads(next(line for line in events.splitlines() if '"step.done"' in line).removeprefix("data: "))
    assert done["payload"]["result"] == {
        "size": len(SECRET),
        "access_token": MASK,
        "iban": MASK,
        "note": {"api_key": [MASK]},
    }
    # The log has what was there, and the checksum is that of the log.
    assert log[0].payload["payload"] == GIVEN
    assert stored["checksum"] == checksum(fold(started, log))


async def test_a_worker_gets_the_real_values_with_its_lease(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        started = await served.start(PLAY, payload=GIVEN)
        body = {"type": "claim", "id": "1", "worker": "w", "most": 1, "wait_s": 10}
        await served.json("POST", "/api/worker/hello", {"type": "hello", "worker": "w", "pools": [""]})
        answer = await served.http.post("/api/worker/claim", json=body)
        assert started in answer.text
        assert SECRET in answer.text
