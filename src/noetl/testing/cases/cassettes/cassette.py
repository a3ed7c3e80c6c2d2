"""Cassettes: recorded outcomes of a real run, replayed in tests.

Times are seconds. Tested in tests/unit/testing/test_cassette.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct
from msgspec.structs import replace

from noetl.engine.state.writes import merge
from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.model.manifest import combined
from noetl.model.refs import expanded, is_manifest, with_views
from noetl.testing.cases.checks.expect import route
from noetl.testing.cases.files.read import Given, duration_ms

VERSION: Final = 1
_MOST_SHOWN: Final = 2_000  # largest result in bytes that a first test compares


class Cassette(Struct, frozen=True):
    """A recorded run."""

    path: str
    workload: Mapping[str, Any] = {}
    messages: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []

    def given(self, given: Given) -> tuple[Given, Mapping[str, Any]]:
        """Return the inputs of a case merged over the cassette, and outcomes by call."""
        answers: dict[str, Any] = {}
        for call in self.calls:
            answer = {name: value for name, value in call.items() if name not in ("call", "visit")}
            if "takes" in answer:
                answer["takes"] = duration_ms(answer["takes"]) or 0.0
            answers.setdefault(f"{call.get('call')}#{call.get('visit', 1)}", []).append(answer)
        messages = [{**message, "at": duration_ms(message.get("at", 0)) or 0.0} for message in self.messages]
        laid = replace(given, workload=merge(self.workload, given.workload), messages=given.messages or messages)
        return laid, answers


def read_cassette(text: bytes, name: str) -> Cassette:
    """Read a cassette. Raises InvalidInput."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(text, loader)  # noqa: S506 - one of the safe loaders
    except yaml.YAMLError as error:
        raise InvalidInput(f"{name} is not YAML: {error}") from None
    if not isinstance(data, dict) or data.get("cassette") != VERSION:
        raise InvalidInput(f"{name} is not a cassette; create one with `noetl record ID -o FILE`.")
    return Cassette(
        str(data.get("playbook", "")), data.get("workload") or {}, data.get("messages") or [], data.get("calls") or []
    )


def written(made: Mapping[str, Any]) -> str:
    """Format a cassette as YAML."""
    head = "# Cassette: recorded task outcomes of a real run. Created by `noetl record`; edit it freely.\n"
    return head + str(yaml.safe_dump(dict(made), sort_keys=False, allow_unicode=True, width=120))


def first_test(made: Mapping[str, Any], events: Sequence[Event], cassette: str) -> str:
    """Format a first test file that expects what was recorded."""
    expect: dict[str, Any] = {"status": made.get("status") or "waiting", "route": route(list(events))}
    ended = next((event for event in reversed(events) if event.event_type == "playbook.finished"), None)
    result = expanded(ended.payload.get("result")) if ended is not None else None
    if result is not None and len(msgspec.json.encode(result)) <= _MOST_SHOWN:
        expect["result"] = result
    name = str(made.get("playbook", "")).rpartition("/")[2]
    data = {"playbook": f"{name}.yaml", "tests": [{"name": "runs as recorded", "cassette": cassette, "expect": expect}]}
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120))


async def fetched(reference: Mapping[str, Any], get: Callable[[str], Awaitable[bytes]]) -> Any:
    """Load the value of a reference from a server, part by part for a manifest."""
    if not is_manifest(reference):
        meta = reference.get("meta") or {}
        return with_views(msgspec.json.decode(await get(str(reference["ref"]))), meta.get("also") or {})
    parts = [part["value"] if "value" in part else await fetched(part, get) for part in reference["parts"]]
    return combined(reference, parts)
