"""Short ways to check a playbook in tests: a few lines of it, and what is told about them."""

from __future__ import annotations

from noetl.dsl.diagnostic import Diagnostic
from noetl.dsl.validate import validate
from noetl.wiring import language_kinds

KINDS = language_kinds()
HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: { name: test, path: tests/test }\n"


def checked(text: str | bytes, *, tolerant: bool = False) -> tuple[Diagnostic, ...]:
    """Check a whole playbook."""
    return validate(text, "test.yaml", KINDS, tolerant=tolerant)


def codes(text: str | bytes) -> list[str]:
    return [diagnostic.code for diagnostic in checked(text)]


def marked(text: str) -> tuple[str, list[str]]:
    """Check a playbook with «marks» around what must be pointed at; gives what was pointed at, and the codes."""
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
    """Make a playbook of one step, given the lines below its name."""
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
