"""NOE318 reports a comparison with a value that never occurs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from noetl.dsl.analysis.outcomes import ERROR_KINDS, GATE_EVENTS, ROUTING_EVENTS, STATUSES
from noetl.dsl.analysis.references import Reference
from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example, inside
from noetl.dsl.checking.typos import slip_of
from noetl.dsl.diagnostic import Suggestions
from noetl.expr import dotted

GOOD = example("""\
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
""")
Judge = Callable[[Any, TemplateSite, Suggestions], tuple[str, str] | None]


def _status(value: Any, site: TemplateSite, suggestions: Suggestions) -> tuple[str, str] | None:
    if value in STATUSES:
        return None
    if isinstance(value, int) and site.task is not None and site.task.kind == "http":
        return (
            "`status` is 'ok' or 'error', never a number.",
            "Use the status code of the response: `outcome.http.status`.",
        )
    message = f"`status` is 'ok' or 'error', never '{value}'.{suggestions.did_you_mean(str(value), STATUSES)}"
    return message, "Compare with 'ok' or 'error'."


def _error_kind(value: Any, _: TemplateSite, suggestions: Suggestions) -> tuple[str, str] | None:
    if value in ERROR_KINDS:
        return None
    message = f"No error has the kind '{value}'.{suggestions.did_you_mean(str(value), ERROR_KINDS)}"
    return message, f"Use one of: {', '.join(ERROR_KINDS)}."


def _event(value: Any, site: TemplateSite, suggestions: Suggestions) -> tuple[str, str] | None:
    if site.role == "admit":
        # A gate is evaluated after many events; only a typing mistake is certain.
        if value in GATE_EVENTS or slip_of(str(value), GATE_EVENTS) is None:
            return None
        return (
            f"There is no event '{value}'.{suggestions.did_you_mean(str(value), GATE_EVENTS)}",
            "Correct the name of the event.",
        )
    if value in ROUTING_EVENTS:
        return None
    message = f"No arc is evaluated for an event '{value}'.{suggestions.did_you_mean(str(value), ROUTING_EVENTS)}"
    return message, "Use one of: step.done, step.failed, loop.done."


def _number(value: Any, _: TemplateSite, __: Suggestions) -> tuple[str, str] | None:
    if not isinstance(value, str):
        return None
    return (
        f"The status code of a response is a number, so it never equals the text '{value}'.",
        f"Write it without quotes: {value}.",
    )


def _text(value: Any, _: TemplateSite, __: Suggestions) -> tuple[str, str] | None:
    if isinstance(value, str) or value is True or value is False:
        return None
    return f"A database error code is text, so it never equals the number {value}.", f"Write it in quotes: '{value}'."


def _flag(value: Any, _: TemplateSite, __: Suggestions) -> tuple[str, str] | None:
    if not isinstance(value, str):
        return None
    return (
        f"`retryable` is true or false, never the text '{value}'.",
        "Remove the comparison: `outcome.error.retryable`.",
    )


_OF_OUTCOME: dict[tuple[str | int, ...], Judge] = {
    ("status",): _status,
    ("error", "kind"): _error_kind,
    ("error", "retryable"): _flag,
    ("http", "status"): _number,
    ("pg", "code"): _text,
    ("pg", "sqlstate"): _text,
}


_MOST_PLACED = 100  # values of one template whose place is searched for


def check(subject: CheckContext) -> Iterator[Finding]:
    reported: set[tuple[int, str]] = set()
    compared: dict[tuple[str, str], list[Any]] = {}
    for reference in subject.references:
        judge = _judge(reference)
        template = reference.site.template
        if judge is None or template is None:
            continue
        path = dotted(reference.read.path)
        if (id(reference.site), path) in reported:
            continue
        reported.add((id(reference.site), path))
        # Policies repeat conditions: analyse each only once.
        if (template.source, path) not in compared:
            compared[template.source, path] = sorted(template.values_compared(path), key=str)
        for number, value in enumerate(compared[template.source, path]):
            wrong = None if value is None else judge(value, reference.site, subject.suggestions)
            if wrong:
                offset = reference.read.offset
                start, length = _place(template.source, value, offset) if number < _MOST_PLACED else (offset, 1)
                yield inside(subject, reference.site, start, length, *wrong)


def _judge(reference: Reference) -> Judge | None:
    if reference.means != ("scope",):
        return None
    path, role = reference.read.path, reference.site.role
    if path == ("event", "name"):
        return _event
    # In the `set` of a task, `output` is the result, which may have its own `status`.
    if path[0] == "outcome" or (path[0] == "output" and role != "task_set"):
        return _OF_OUTCOME.get(path[1:])
    return None


def _place(source: str, value: Any, offset: int) -> tuple[int, int]:
    """Return the position of the constant in the template."""
    written = re.escape(str(value))
    pattern = re.compile(rf"(?<=['\"]){written}(?=['\"])" if isinstance(value, str) else rf"(?<!\w){written}(?!\w)")
    match = pattern.search(source, offset) or pattern.search(source)
    return (match.start(), len(match.group())) if match else (offset, 1)


RULE = Rule(
    code="NOE318",
    name="impossible-comparison",
    severity="error",
    summary="A condition compares with a value that never occurs.",
    why=(
        "Some values are fixed: the status of an outcome is `ok` or `error`, arcs are evaluated for `step.done`, "
        "`step.failed` or `loop.done`, and an HTTP status code is a number. A comparison with anything else is always false."
    ),
    fix="Compare with one of the values that the message lists.",
    bad=GOOD.replace("'step.failed'", "'step.error'"),
    good=GOOD,
    check=check,
)
