"""The OpenAPI document: complete, valid; requests from it never break the server."""

from __future__ import annotations

import asyncio
import re
from inspect import signature
from pathlib import Path
from typing import Any, cast

import httpx
import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, reject, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from noetl.server.api import endpoints
from noetl.server.app import app
from noetl.server.http.openapi import document
from tests.server.fuzzing import asked, no_traces
from tests.server.http.test_fuzz import busy

DOCUMENT: dict[str, Any] = msgspec.json.decode(document())
ENDPOINTS = endpoints()


def test_every_route_takes_the_parameters_of_its_path() -> None:
    for endpoint in ENDPOINTS:
        names = [name for name in list(signature(endpoint.run).parameters)[1:] if name not in ("body", "query")]
        assert tuple(names) == endpoint.places or (len(endpoint.places), names) == (1, ["trigger_id"]), endpoint.name


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
FEW, MANY = 6, 200


def cases(operation: Any, names: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return requests that the document allows, and some that it does not allow."""
    known = {"execution_id": names["waits"], "step": "ask", "name": "pg_main", "worker_id": "host:17"}
    known |= {"work_id": names["lease"]["work"]["work_id"], "playbook": names["lease"]["work"]["playbook"]}
    places = {found: known[found] for found in re.findall(r"{(\w+)}", operation.path) if found in known}
    found = (
        [operation.as_strategy(), operation.as_strategy(path_parameters=places)]
        if places
        else [operation.as_strategy()]
    )
    if operation.body or operation.query:
        found.append(operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE))
    return st.one_of(found)


def hold(operation: Any, folder: Path, profile: settings) -> None:
    """Check that requests from the document get the responses that it describes."""
    with asyncio.Runner() as runner:
        entering = busy(folder)
        served, names = runner.run(entering.__aenter__())
        server = app(served.services)
        described = {int(status) for status in operation.definition.raw["responses"]}

        async def sent(method: str, target: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
            asking = asyncio.ensure_future(asked(server, method, target, body, headers=headers))
            while not asking.done():
                await asyncio.wait([asking], timeout=0.02)
                served.services.registry.answer_claims()  # so that no claim waits for work
            status, _, text = await asking
            return status, text

        @given(case=cases(operation, names))
        @profile
        def ask(case: Any) -> None:
            try:
                made = httpx.Request(**_request(case))
            except httpx.InvalidURL:
                reject()  # httpx makes no address of more than 64 KiB; test_bounds.py sends them
            headers = {key: value for key, value in made.headers.items() if key not in ("host", "content-length")}
            target = made.url.raw_path.decode()
            status, text = runner.run(sent(made.method, target, made.read(), headers))
            assert status < 500, (case, text)
            beside = (
                {404, 405} if target.partition("?")[0] != case.formatted_path else set()
            )  # another path than was meant
            assert status in described | beside | {429}, (case, status, text)

        try:
            with no_traces():
                ask()
        finally:
            runner.run(entering.__aexit__(None, None, None))


def _request(case: Any) -> dict[str, Any]:
    sent = case.as_transport_kwargs(base_url="http://127.0.0.1")
    sent.pop("cookies", None)
    if isinstance(sent.get("data"), bytes | str):
        sent["content"] = sent.pop("data")
    return {**sent, "headers": {str(key): value for key, value in sent.pop("headers", {}).items()}}


_STEADY = settings(
    max_examples=FEW,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}")
def test_requests_made_from_the_document_never_break_the_server(operation: Any, tmp_path: Path) -> None:
    hold(operation, tmp_path, _STEADY)


@pytest.mark.chaos
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: f"{operation.method} {operation.path}")
def test_very_many_requests_made_from_the_document_never_break_the_server(operation: Any, tmp_path: Path) -> None:
    hold(operation, tmp_path, settings(_STEADY, max_examples=MANY, derandomize=False))
