"""Lint the project's English: docstrings, comments, messages and pages.

    python scripts/voice.py                              every finding, then a count per package
    python scripts/voice.py --only src/noetl/engine      one folder or file; repeatable
    python scripts/voice.py --counts                     the counts alone

Exits 1 if there is a finding. Three rules:

- `opening`: a docstring begins with a verb or a noun, not with `Give`, `Tell`, `Let`, `Say` or `So many`.
- `length`: the first line of a docstring has at most 80 characters.
- `word`: no person-like parts (`whoever`, `nobody`, `is told`) in docstrings, comments, messages and pages.

Playbook texts, fenced blocks and code spans are exempt. Tested in tests/architecture/test_voice.py.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FIRST_LINE = 80
OPENING = re.compile(r"(Gives?|Tells?|Lets?|Says?|So many)\b", re.IGNORECASE)
WORD = re.compile(
    r"\b(who(?:m)?ever|nobody|somebody|someone|anybody|everybody|those who|he|she|him"
    r"|(?:is|are|was|were|be|been|being|gets?) told|(?:is|are|was|were|be) let|who asks?|so many)\b",
    re.IGNORECASE,
)
# Python files under these folders are linted; string literals only where the second column says so.
PYTHON = {"src": True, "tests": False, "bench": False, "scripts": False}
PAGES = ("*.md", "docs/**/*.md", "examples/**/*.md")
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,}).*?^(?P=indent)(?P=ticks) *$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`[^`\n]*`")
PLAYBOOK = re.compile(r"apiVersion|workflow:|step:|\btool:|\bkind:")


class Finding(NamedTuple):
    """One offence: its place, the rule and what was found."""

    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.text}"


def words(path: str, line: int, text: str) -> Iterator[Finding]:
    """Yield the banned words of a text that starts at the given line."""
    for match in WORD.finditer(text):
        yield Finding(path, line + text.count("\n", 0, match.start()), "word", f"{match[0]!r}")


def blank(match: re.Match[str]) -> str:
    """Replace a match by blanks, keeping its lines."""
    return re.sub(r"[^\n]", " ", match[0])


def page(path: str, text: str) -> Iterator[Finding]:
    """Yield the findings of a Markdown page, outside fenced blocks and code spans."""
    yield from words(path, 1, SPAN.sub(blank, FENCE.sub(blank, text)))


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the docstrings; only statements are visited, since no expression has one."""
    open_nodes: list[Any] = [tree]
    for node in open_nodes:
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            found = getattr(node, block, ())
            open_nodes += found if isinstance(found, list) else ()
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            match node.body[0]:
                case ast.Expr(value=ast.Constant(value=str()) as value):
                    yield value


def docstring(path: str, node: ast.Constant) -> Iterator[Finding]:
    text = str(node.value)
    first = text.lstrip().partition("\n")[0].rstrip()
    if OPENING.match(first):
        yield Finding(path, node.lineno, "opening", first)
    if len(first) > FIRST_LINE:
        yield Finding(path, node.lineno, "length", f"{len(first)} characters: {first}")
    yield from words(path, node.lineno, SPAN.sub(blank, text))


def comments(path: str, text: str) -> Iterator[Finding]:
    if not any(WORD.search(line, line.index("#")) for line in text.splitlines() if "#" in line):
        return  # most files: reading their tokens would be most of the work
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from words(path, token.start[0], SPAN.sub(blank, token.string))


def literals(path: str, tree: ast.Module, known: set[int]) -> Iterator[Finding]:
    """Yield the findings of string literals that have a blank and are no playbook."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text) if id(node) not in known and " " in text:
                if not PLAYBOOK.search(text):
                    yield from (found._replace(line=node.lineno) for found in words(path, 0, text))


def python(path: str, text: str, with_literals: bool) -> Iterator[Finding]:
    """Yield the findings of a Python file."""
    tree = ast.parse(text)
    described = list(docstrings(tree))
    for node in described:
        yield from docstring(path, node)
    yield from comments(path, text)
    if with_literals:
        yield from literals(path, tree, {id(node) for node in described})


def lint(files: Iterable[Path]) -> Iterator[Finding]:
    for file in files:
        path, text = file.relative_to(ROOT).as_posix(), file.read_text(encoding="utf-8")
        if file.suffix == ".py":
            yield from sorted(python(path, text, PYTHON[path.partition("/")[0]]))
        else:
            yield from page(path, text)


def linted(only: Iterable[str] = ()) -> list[Path]:
    """Return every file to lint, or those at or below the given paths."""
    files = {file for folder in PYTHON for file in (ROOT / folder).rglob("*.py")}
    files |= {file for pattern in PAGES for file in ROOT.glob(pattern)}
    wanted = [Path(path).resolve() for path in only]
    return sorted(file for file in files if not wanted or any(file.is_relative_to(path) for path in wanted))


def package(path: str) -> str:
    """Return the package that a file counts for: `src/noetl/engine`, `README.md`."""
    parts = path.split("/")
    return "/".join(parts[: 3 if parts[0] == "src" and len(parts) > 3 else min(2, len(parts) - 1)]) or path


def table(findings: Iterable[Finding]) -> str:
    """Return the counts per package and rule as text."""
    counts = Counter((package(finding.path), finding.rule) for finding in findings)
    rules = ("opening", "length", "word")
    rows = {name: [counts[name, rule] for rule in rules] for name in sorted({name for name, _ in counts})}
    rows["total"] = [sum(row[at] for row in rows.values()) for at in range(len(rules))]
    lines = [f"{name:<24}" + "".join(f"{count:>9}" for count in (*row, sum(row))) for name, row in rows.items()]
    return "\n".join([f"{'package':<24}" + "".join(f"{rule:>9}" for rule in (*rules, "all")), *lines])


def main() -> int:
    parser = argparse.ArgumentParser(description="Lint the project's English.")
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATH", help="Lint one file or folder. Repeatable."
    )
    parser.add_argument("--counts", action="store_true", help="Print the counts per package, not each finding.")
    options = parser.parse_args()
    findings = list(lint(linted(options.only)))
    if not findings:
        return 0
    if not options.counts:
        print("\n".join(map(str, findings)))
        print()
    print(table(findings))
    return 1


if __name__ == "__main__":
    sys.exit(main())
