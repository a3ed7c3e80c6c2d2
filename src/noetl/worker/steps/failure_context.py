"""Details of failed work for its dead letter: task, inputs, stack, context.

No secret leaves the worker: values of every resolved credential are masked wherever they occur, and so are values under
the name of a secret, in a map, in a text, or before the `@` of an address. Texts that are too long are cut after that.
Tested in tests/unit/worker/steps/test_failure_context.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from noetl.dsl.secret_names import is_secret_name
from noetl.engine.pipeline.pipeline import Pipeline
from noetl.engine.state.dead_letters import EXCERPT_BYTES, MASK, STACK_BYTES, excerpt
from noetl.engine.tasks.actions import Finished
from noetl.engine.tasks.render import RenderError
from noetl.engine.tasks.sinks import sink_id
from noetl.model.refs import expanded
from noetl.worker.secrets.redact import Secrets

_MOST_TEXT: Final = 4_000  # characters of one text of a payload
_READ: Final = 16_000  # of these are masked
_MOST_ITEMS: Final = 50
_MOST_BYTES: Final = 32 * 1024  # of a whole payload


def failure_context(pipeline: Pipeline, ended: Finished, secrets: Secrets) -> dict[str, Any]:
    """Return the context of a failed pipeline."""
    memory, scopes, within = pipeline.memory, pipeline.scopes, pipeline
    while within.task.kind == "workbook" and within.lost is not None:
        within = within.lost
    task = within.task
    payload: dict[str, Any] = {"spec": shown(within.fields, secrets)}
    try:
        payload["input"] = shown(within.inputs(within.renderer(within.memory.began))[0], secrets)
    except RenderError:  # the error already describes it
        payload["input"] = {}
    names = ("workload", "steps", "ctx", "args", "iter")
    context = {name: shown(getattr(scopes, name), secrets) for name in names}
    if memory.prev is not None:
        context["_prev"] = shown(expanded(memory.prev.kept), secrets)
    helpers = ended.outcome.helpers if ended.outcome is not None else {}
    found: dict[str, Any] = {
        "tool": task.kind,
        "sink": sink_id(task),
        "attempts": max(1, memory.attempt, within.memory.attempt),
        "first_seen": memory.first_began,
        "stack": secrets.text(str((helpers.get("py") or {}).get("traceback") or ""))[-STACK_BYTES:],
        "payload": payload,
        "context": excerpt(context),
    }
    if len(msgspec.json.encode(payload)) > _MOST_BYTES:
        found["payload"] = {"excerpt": msgspec.json.encode(payload)[:EXCERPT_BYTES].decode(errors="ignore")}
    return found


def shown(value: Any, secrets: Secrets, key: str = "") -> Any:
    """Return plain data for people, masked and limited; `key` names the value."""
    if isinstance(value, Mapping):
        return {secrets.text(str(name)): shown(item, secrets, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        more = [f"… {len(value) - _MOST_ITEMS} more"] if len(value) > _MOST_ITEMS else []
        return [shown(item, secrets, key) for item in value[:_MOST_ITEMS]] + more
    if value is None or isinstance(value, bool) or value == "":
        return value
    if is_secret_name(key):
        return MASK
    if isinstance(value, int | float):
        return secrets.value(value)
    text = str(value)
    is_long = len(text) > _READ
    text = secrets.text(text[:_READ], "end" if is_long else "")  # masked before it is cut to what is kept
    return text if len(text) <= _MOST_TEXT and not is_long else text[:_MOST_TEXT] + "…"
