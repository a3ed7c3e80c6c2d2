"""Checks small playbooks and shows what was told, with the exact text that each diagnostic underlines."""

from __future__ import annotations

from collections.abc import Collection
from textwrap import dedent
from typing import NamedTuple

from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.nodes import Source
from noetl.dsl.validate import validate
from tests.unit.dsl.rules.checked import HEAD, KINDS

WORKLOAD = '    workload: { api: "http://127.0.0.1", rows: [1], mode: full, db: { host: h, port: 1 } }\n'


class Told(NamedTuple):
    """A code and the text under its caret."""

    code: str
    text: str


def diagnostics(body: str, catalog: Collection[str] | None = None) -> tuple[Diagnostic, ...]:
    """Check a playbook of which `body` is all but the head; rules of every group have their say."""
    return validate(HEAD + dedent(body), "sample.yaml", KINDS, catalog=catalog)


def told(body: str, catalog: Collection[str] | None = None) -> list[Told]:
    """Give every diagnostic as its code and the text that it underlines."""
    source = Source("sample.yaml", HEAD + dedent(body))
    return [
        Told(found.code, source.text[source.offset(found.start) : source.offset(found.end)])
        for found in diagnostics(body, catalog)
    ]


def message(body: str, catalog: Collection[str] | None = None) -> str:
    """Give message and fix of the only diagnostic."""
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
