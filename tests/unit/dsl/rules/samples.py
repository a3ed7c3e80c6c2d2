"""Check small playbooks; return the diagnostics and the underlined texts."""

from __future__ import annotations

from collections.abc import Collection
from textwrap import dedent
from typing import NamedTuple

from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.reading.nodes import Source
from noetl.dsl.validate import validate
from noetl.wiring.embedded import language_kinds

KINDS = language_kinds()
HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: { name: test, path: tests/test }\n"


def checked(text: str | bytes, *, tolerant: bool = False) -> tuple[Diagnostic, ...]:
    return validate(text, "test.yaml", KINDS, tolerant=tolerant)


def codes(text: str | bytes) -> list[str]:
    return [diagnostic.code for diagnostic in checked(text)]


def marked(text: str) -> tuple[str, list[str]]:
    """Check a playbook with «marks»; return the underlined texts and the codes."""
    plain = text.replace("«", "").replace("»", "")
    found = checked(plain)
    lines = plain.split("\n")
    shown = list(lines)
    for diagnostic in sorted(found, key=lambda one: one.start, reverse=True):
        row, start, end = diagnostic.line - 1, diagnostic.column - 1, diagnostic.end.column - 1
        shown[row] = shown[row][:start] + "«" + shown[row][start:end] + "»" + shown[row][end:]
    return "\n".join(shown), [diagnostic.code for diagnostic in found]


def indented(body: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" if line else "\n" for line in body.strip("\n").split("\n"))


def with_root(body: str) -> str:
    """Add lines at the root of a playbook that is fine otherwise."""
    return HEAD + indented(body, 0) + "workflow:\n  - step: work\n    tool: { kind: noop }\n"


def with_step(body: str) -> str:
    """Make a playbook of one step from the lines below its name."""
    return HEAD + "workflow:\n  - step: work\n" + indented(body, 4)


def with_task(body: str) -> str:
    """Make a playbook of one step with one task."""
    return with_step("tool:\n" + indented(body, 2))


def with_rules(body: str) -> str:
    """Make a playbook of one http task with these rules."""
    return with_task(
        "kind: http\nurl: https://example.org\nspec:\n  policy:\n    on_unmatched: fail\n    rules:\n"
        + indented(body, 6)
    )


def with_gate(body: str) -> str:
    """Make a playbook of one step with these rules in its gate."""
    return with_step("tool: { kind: noop }\nspec:\n  policy:\n    admit:\n      rules:\n" + indented(body, 8))


WORKLOAD = '    workload: { api: "http://127.0.0.1", rows: [1], mode: full, db: { host: h, port: 1 } }\n'


class Finding(NamedTuple):
    """A code and the underlined text."""

    code: str
    text: str


def diagnostics(body: str, catalog: Collection[str] | None = None) -> tuple[Diagnostic, ...]:
    """Check a playbook: the head and this body."""
    return validate(HEAD + dedent(body), "sample.yaml", KINDS, catalog=catalog)


def report(body: str, catalog: Collection[str] | None = None, only: str = "NOE") -> list[Finding]:
    """Return code and underlined text of the diagnostics with this prefix."""
    source = Source("sample.yaml", HEAD + dedent(body))
    return [
        Finding(found.code, source.text[source.offset(found.start) : source.offset(found.end)])
        for found in diagnostics(body, catalog)
        if found.code.startswith(only)
    ]


def message(body: str, catalog: Collection[str] | None = None) -> str:
    """Return message and fix of the only diagnostic."""
    (found,) = diagnostics(body, catalog)
    return f"{found.message} {found.fix}"


def task(field: str, kind: str = "noop") -> str:
    """A playbook of one task with one field."""
    return (
        f"{WORKLOAD}    workflow:\n      - step: only\n        tool:\n          - work: {{ kind: {kind}, {field} }}\n"
    )


def condition(when: str) -> str:
    """A playbook whose only arc with a condition has this one."""
    return f"""{WORKLOAD}\
    workflow:
      - step: first
        tool: {{ kind: http, url: "{{{{ workload.api }}}}" }}
        next:
          spec: {{ mode: inclusive }}
          arcs:
            - step: second
              when: {when}
            - step: third
      - {{ step: second, tool: {{ kind: noop }} }}
      - {{ step: third, tool: {{ kind: noop }} }}
    """


def rule(when: str, kind: str = "http", fields: str = 'url: "{{ workload.api }}"') -> str:
    """A playbook with one task of a kind, whose policy has this condition first."""
    return f"""{WORKLOAD}\
    workflow:
      - step: only
        tool:
          - work:
              kind: {kind}
              {fields}
              spec:
                policy:
                  rules:
                    - when: "{{{{ {when} }}}}"
                      then: {{ do: retry, attempts: 2 }}
                    - when: "{{{{ outcome.status == 'error' }}}}"
                      then: {{ do: fail }}
                    - else:
                        then: {{ do: continue }}
    """
