"""Cassettes: what the tasks of a real run came to, kept so that a test can answer with it.

Made from the log of an execution and of its children; read back as mocks. Secrets are masked by name here; by value they
were masked before they reached the log. Tested in tests/unit/testing/test_cases.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import yaml
from msgspec import Struct
from msgspec.structs import replace

from noetl.engine.writes import merge
from noetl.model.errors import InvalidInput
from noetl.testing.cases.read import Given

VERSION: Final = 1


class Cassette(Struct, frozen=True):
    """A recorded run."""

    path: str
    workload: Mapping[str, Any] = {}
    messages: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []

    def given(self, given: Given) -> tuple[Given, Mapping[str, Any]]:
        """Give what a case is given with this cassette below it, and the answers by call."""
        answers: dict[str, Any] = {}
        for call in self.calls:
            answers.setdefault(str(call.get("call")), []).append(
                {name: value for name, value in call.items() if name != "call"}
            )
        laid = replace(
            given,
            workload=merge(self.workload, given.workload),
            messages=given.messages or [dict(message) for message in self.messages],
        )
        return laid, answers


def read_cassette(text: bytes, name: str) -> Cassette:
    """Read a cassette. Raises InvalidInput."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(text, loader)  # noqa: S506 - it is one of the safe loaders
    except yaml.YAMLError as error:
        raise InvalidInput(f"{name} is not YAML: {error}") from None
    if not isinstance(data, dict) or data.get("cassette") != VERSION:
        raise InvalidInput(f"{name} is no cassette; `noetl record ID -o FILE` makes one.")
    return Cassette(
        str(data.get("playbook", "")), data.get("workload") or {}, data.get("messages") or [], data.get("calls") or []
    )
