"""NOE318 reports a comparison with a value that never occurs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from noetl.dsl.diagnostic import did_you_mean
from noetl.dsl.outcome import ERROR_KINDS, GATE_EVENTS, ROUTING_EVENTS, STATUSES
from noetl.dsl.references import Reference
from noetl.dsl.rule import Found, Rule, inside
from noetl.dsl.sites import Site
from noetl.dsl.subject import Subject
from noetl.dsl.typos import slip_of
from noetl.expr import dotted

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: fetch, path: examples/fetch }
workload: { api: "http://127.0.0.1:8080" }
workflow:
  - step: fetch
    tool: { kind: http, url: "{{ workload.api }}/rows" }
    next:
      arcs:
        - step: store
        - step: alarm
          when: "{{ event.name == 'step.failed' }}"
  - step: store
    tool: { kind: noop }
  - step: alarm
    tool: { kind: noop }
"""
Judge = Callable[[Any, Site], tuple[str, str] | None]


def _status(value: Any, site: Site) -> tuple[str, str] | None:
    if value in STATUSES:
        return None
    if isinstance(value, int) and site.task is not None and site.task.kind == "http":
        return "`status` is 'ok' or 'error', never a number.", "Ask for the code of the answer: `outcome.http.status`."
    message = f"`status` is 'ok' or 'error', never '{value}'.{did_you_mean(str(value), STATUSES)}"
    return message, "Compare with 'ok' or 'error'."


def _error_kind(value: Any, _: Site) -> tuple[str, str] | None:
    if value in ERROR_KINDS:
        return None
    message = f"No error has the kind '{value}'.{did_you_mean(str(value), ERROR_KINDS)}"
    return message, f"Kinds are: {', '.join(ERROR_KINDS)}."


def _event(value: Any, site: Site) -> tuple[str, str] | None:
    if site.role == "admit":
        # A gate is tried after events of many names; only a slip is certain.
        if value in GATE_EVENTS or slip_of(str(value), GATE_EVENTS) is None:
            return None
        return f"No event is called '{value}'.{did_you_mean(str(value), GATE_EVENTS)}", "Correct the name of the event."
    if value in ROUTING_EVENTS:
        return None
    message = f"A step is never routed by an event '{value}'.{did_you_mean(str(value), ROUTING_EVENTS)}"
    return message, "Events that route are: step.done, step.failed, loop.done."


def _number(value: Any, _: Site) -> tuple[str, str] | None:
    if not isinstance(value, str):
        return None
    return (
        f"The code of an answer is a number, so it never equals the text '{value}'.",
        f"Write it without quotes: {value}.",
    )


def _text(value: Any, _: Site) -> tuple[str, str] | None:
    if isinstance(value, str) or value is True or value is False:
        return None
    return f"A code of the database is text, so it never equals the number {value}.", f"Write it in quotes: '{value}'."


def _flag(value: Any, _: Site) -> tuple[str, str] | None:
    if not isinstance(value, str):
        return None
    return (
        f"`retryable` is true or false, never the text '{value}'.",
        "Leave the comparison out: `outcome.error.retryable`.",
    )


_OF_OUTCOME: dict[tuple[str | int, ...], Judge] = {
    ("status",): _status,
    ("error", "kind"): _error_kind,
    ("error", "retryable"): _flag,
    ("http", "status"): _number,
    ("pg", "code"): _text,
    ("pg", "sqlstate"): _text,
}


def check(subject: Subject) -> Iterator[Found]:
    told: set[tuple[int, str]] = set()
    compared: dict[tuple[str, str], list[Any]] = {}
    for reference in subject.references:
        judge = _judge(reference)
        template = reference.site.template
        if judge is None or template is None:
            continue
        path = dotted(reference.read.path)
        if (id(reference.site), path) in told:
            continue
        told.add((id(reference.site), path))
        # Policies repeat their conditions: each is looked through once.
        if (template.source, path) not in compared:
            compared[template.source, path] = sorted(template.values_compared(path), key=str)
        for value in compared[template.source, path]:
            wrong = None if value is None else judge(value, reference.site)
            if wrong:
                start, length = _place(template.source, value, reference.read.offset)
                yield inside(subject, reference.site, start, length, *wrong)


def _judge(reference: Reference) -> Judge | None:
    if reference.means != ("scope",):
        return None
    path, role = reference.read.path, reference.site.role
    if path == ("event", "name"):
        return _event
    # In the `set` of a task `output` is the result, whose status is the kind's own.
    if path[0] == "outcome" or (path[0] == "output" and role != "task_set"):
        return _OF_OUTCOME.get(path[1:])
    return None


def _place(source: str, value: Any, offset: int) -> tuple[int, int]:
    """Find the constant in the template: behind the read where it stands there, else anywhere."""
    written = re.escape(str(value))
    pattern = re.compile(rf"(?<=['\"]){written}(?=['\"])" if isinstance(value, str) else rf"(?<!\w){written}(?!\w)")
    found = pattern.search(source, offset) or pattern.search(source)
    return (found.start(), len(found.group())) if found else (offset, 1)


RULE = Rule(
    code="NOE318",
    name="impossible-comparison",
    group="templates",
    severity="error",
    summary="A condition compares with a value that never occurs.",
    why=(
        "Some values come from short lists: an outcome's status is `ok` or `error`, a step is routed by `step.done`, "
        "`step.failed` or `loop.done`, and the code of an HTTP answer is a number. A comparison with anything else is false "
        "for ever, and what depends on it never happens."
    ),
    fix="Compare with a value of the list that the message shows.",
    bad=GOOD.replace("'step.failed'", "'step.error'"),
    good=GOOD,
    check=check,
)
