"""The OpenAPI document: complete, valid, with examples that fit; and requests made from it never break the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from jsonschema import Draft202012Validator

from noetl.server.api import endpoints
from noetl.server.openapi import document
from tests.server.serving import in_process

DOCUMENT: dict[str, Any] = msgspec.json.decode(document())
ENDPOINTS = endpoints()


def test_every_route_is_described_with_its_errors() -> None:
    described = {
        (method.upper(), path): operation
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    }
    assert set(described) == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    for operation in described.values():
        assert operation["summary"]
        problems = [answer for status, answer in operation["responses"].items() if status >= "400"]
        assert problems
        assert all("application/problem+json" in answer["content"] for answer in problems)
    names = [operation["operationId"] for operation in described.values()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "endpoint", [one for one in ENDPOINTS if one.example is not None], ids=lambda endpoint: endpoint.name
)
def test_an_example_is_what_the_route_takes(endpoint: Any) -> None:
    msgspec.json.decode(msgspec.json.encode(endpoint.example), type=endpoint.body)
    operation = DOCUMENT["paths"][endpoint.path][endpoint.method.lower()]
    content = operation["requestBody"]["content"]["application/json"]
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    Draft202012Validator(schema).validate(content["example"])


SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS: list[Any] = [cast("Any", found).ok() for found in SCHEMA.get_all_operations()]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}")
def test_requests_made_from_the_document_never_break_the_server(operation: Any, tmp_path: Path) -> None:
    import asyncio

    if operation.path.endswith("stream") or operation.path == "/api/worker/claim":
        pytest.skip("it waits by design; tested by itself")

    with asyncio.Runner() as runner:
        entering = in_process(tmp_path)
        served = runner.run(entering.__aenter__())

        @given(case=operation.as_strategy())
        @settings(
            max_examples=12,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: Any) -> None:
            sent = case.as_transport_kwargs(base_url="http://127.0.0.1")
            sent.pop("cookies", None)
            if isinstance(sent.get("data"), bytes | str):
                sent["content"] = sent.pop("data")
            headers = {str(key): value for key, value in sent.pop("headers", {}).items()}
            answer = runner.run(served.http.request(**sent, headers=headers))
            assert answer.status_code < 500 or answer.status_code == 503, (case, answer.text)

        try:
            ask()
        finally:
            runner.run(entering.__aexit__(None, None, None))
