"""The generated OpenAPI document. Tested in tests/server/http/test_openapi.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from importlib import import_module
from typing import Any

import msgspec

from noetl import __version__
from noetl.server.http.endpoint import JSON, Endpoint, Noun
from noetl.server.problems import MEDIA
from noetl.wire.problem import Problem

_REF = "#/components/schemas/{name}"
_ALWAYS = (400, 401, 403, 413, 422, 503)
_ROLE = "x-noetl-role"


def _nouns() -> list[Noun]:
    # Imported late: a route of theirs serves this document.
    nouns: list[Noun] = import_module("noetl.server.api").nouns()
    return nouns


def described() -> Iterator[tuple[str, str, list[Endpoint]]]:
    """Yield name, description and routes of every noun."""
    for noun in _nouns():
        yield noun.name, noun.about, noun.endpoints


@cache
def document() -> bytes:
    """Return the document as JSON."""
    endpoints = [endpoint for noun in _nouns() for endpoint in noun.endpoints]
    kinds = [kind for one in endpoints for kind in (one.body, one.gives_type) if kind is not None]
    _, components = msgspec.json.schema_components([*dict.fromkeys(kinds), Problem], ref_template=_REF)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "NoETL",
                "version": __version__,
                "description": "Every error is application/problem+json: what happened, where, why, and what to do.",
            },
            "tags": [{"name": noun.name, "description": noun.about} for noun in _nouns()],
            "paths": paths,
            "components": {
                "schemas": components,
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": "An API token."}},
            },
        }
    )


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.noun}_{endpoint.run.__name__}",
        "summary": endpoint.summary,
        "tags": [endpoint.noun],
        _ROLE: endpoint.role,
        "security": [] if endpoint.role == "open" else [{"token": []}, {}],
        "parameters": [*_in_path(endpoint), *_in_query(endpoint)],
        "responses": _responses(endpoint),
    }
    if endpoint.body is not None:
        content: dict[str, Any] = {"schema": _ref(endpoint.body)}
        if endpoint.example is not None:
            content["example"] = endpoint.example
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
    elif endpoint.takes != JSON:
        operation["requestBody"] = {
            "required": True,
            "content": {endpoint.takes: {"schema": {"type": "string", "format": "binary"}}},
        }
    if endpoint.act == "execution.start" or endpoint.act == "execution.signal":
        key = {"name": "Idempotency-Key", "in": "header", "required": False}
        key |= {
            "schema": {"type": "string", "maxLength": 200},
            "description": "A request with the same key is applied once.",
        }
        operation["parameters"].append(key)
    return operation


def _in_path(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", endpoint.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _in_query(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    if endpoint.query is None:
        return
    _, components = msgspec.json.schema_components([endpoint.query], ref_template=_REF)
    query = components[endpoint.query.__name__]
    for name, schema in query["properties"].items():
        yield {
            "name": name,
            "in": "query",
            "required": name in query.get("required", ()),
            "schema": _without_null(schema),
        }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a query parameter, which is omitted and never null."""
    kept = {key: value for key, value in schema.items() if not (key == "default" and value is None)}
    choices = [one for one in kept.get("anyOf", ()) if one != {"type": "null"}]
    if len(choices) == 1:
        rest = {key: value for key, value in kept.items() if key != "anyOf"}
        return {**rest, **choices[0]}
    return kept


def _ref(kind: Any) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return schema


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {}} if endpoint.gives_type is None else {"schema": _ref(endpoint.gives_type)}
    found: dict[str, Any] = {str(endpoint.status): {"description": "Success.", "content": {endpoint.gives: content}}}
    for status in sorted({*_ALWAYS, *endpoint.problems}):
        problem = {"description": HTTPStatus(status).phrase, "content": {MEDIA: {"schema": _ref(Problem)}}}
        found[str(status)] = problem
    return found
