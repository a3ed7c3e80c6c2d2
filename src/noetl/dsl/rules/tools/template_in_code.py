"""NOE509 reports a template in Python code, which is not rendered."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.dsl.reading.source_map import SourceMap
from noetl.dsl.rules.tools.python_snippets import Places, read

GOOD = example("""\
workload: { who: world }
workflow:
  - step: greet
    tool:
      kind: python
      args: { who: "{{ workload.who }}" }
      code: |
        result = "Hello, " + who
""")
_TEMPLATE = re.compile(
    r"\{\{\s*(?:workload|ctx|vars|iter|args|input|keychain|execution_id|job|_prev)(?:[.\[][^{}]*)?\s*(?:\|[^{}]*)?\}\}"
)


def check(subject: CheckContext) -> Iterator[Finding]:
    for code in subject.code:
        text = code.node.text
        if code.language != "python" or "{{" not in text:
            continue
        tree = read(text)
        if not isinstance(tree, ast.Module):
            continue
        places, source = Places(text), SourceMap(subject.source, code.node)
        for offset in sorted({*_doubled_sets(tree, places), *_strings(tree, text, places)}):
            start = source.locate(offset)
            yield Finding(
                start,
                start + len("{{"),
                "Python code is not a template: these braces are not rendered.",
                'Bind the value under `input` (`input: { name: "{{ … }}" }`) and use it in the code as a variable, `name`.',
            )


def _doubled_sets(tree: ast.Module, places: Places) -> Iterator[int]:
    """Yield every `{{ name }}` in an expression: in Python, an invalid set."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Set) and len(node.elts) == 1 and isinstance(node.elts[0], ast.Set):
            yield places.of(node)


def _strings(tree: ast.Module, text: str, places: Places) -> Iterator[int]:
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            offset = text.find("{{", places.of(node)) if _TEMPLATE.search(node.value) else -1
            if offset >= 0:
                yield offset


RULE = Rule(
    code="NOE509",
    name="template-in-code",
    severity="warning",
    summary="Python code contains `{{ … }}`, which is not rendered there.",
    why=(
        "Code is never rendered, so that a value cannot change what it does. In Python, `{{ x }}` is a set inside a set, "
        'which fails, and `"{{ x }}"` is a text with braces.'
    ),
    fix="Bind the value under `input` (or `args`) and use it in the code as a variable of that name.",
    bad=GOOD.replace('"Hello, " + who', '"Hello, {{ workload.who }}"'),
    good=GOOD,
    check=check,
)
