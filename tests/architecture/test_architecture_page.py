"""Hold ARCHITECTURE.md to the code.

The page has three parts that are read here:

- `## A step's life`: a numbered list, one hop per line, each beginning with `` `path/to/file.py:Name.method` ``.
- `## Where is …`: a table whose last column names files.
- the other tables, up to `## Recipes`: they name every package and every file of src/noetl exactly once; a folder in which
  all files are of one kind (tests/architecture/folders.py) is named as a folder.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache

import pytest

from tests.architecture.folders import SAME_KIND
from tests.architecture.source import ROOT, modules

HOPS, FILES = 45, 25
HOP = re.compile(r"^\d+\. `(?P<path>[\w./]+\.py):(?P<name>[\w.]+)`", re.MULTILINE)
PATH = re.compile(r"`(?P<path>(?:src/noetl/)?[\w./*]+(?:\.py|\.sql|/))`")


@cache
def page() -> str:
    return (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def section(title: str, text: str) -> str:
    """Return the text under the heading that begins with a title, up to the next one."""
    match = re.search(rf"^##+ {re.escape(title)}.*?$(?P<body>.*?)(?=^#{{1,2}} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"no section {title!r}"
    return match["body"]


def hops(text: str) -> list[tuple[str, str]]:
    return [(match["path"], match["name"]) for match in HOP.finditer(section("A step's life", text))]


def source_path(path: str) -> str:
    return path if path.startswith("src/") else f"src/noetl/{path}"


def definitions(text: str) -> set[str]:
    """Return the dotted names of all functions, methods and classes of a module."""

    def walk(body: list[ast.stmt], prefix: str) -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield prefix + node.name
                yield from walk(node.body, f"{prefix}{node.name}.")
            else:
                yield from walk([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)], prefix)

    return set(walk(ast.parse(text).body, ""))


def missing_hops(text: str) -> list[str]:
    """Return the hops that name a file or a function that does not exist."""
    found = []
    for path, name in hops(text):
        file = ROOT / source_path(path)
        if not file.is_file():
            found.append(f"{path}: no such file")
        elif name not in definitions(file.read_text(encoding="utf-8")):
            found.append(f"{path}: no {name}")
    return found


def table_rows(text: str) -> list[list[str]]:
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    return [row for row in rows[1:] if not set("".join(row)) <= set("-: ")]


def paths(text: str) -> list[str]:
    return [source_path(match["path"]) for match in PATH.finditer(text)]


def map_text(text: str) -> str:
    """Return the page without the two sections that name files again."""
    for title in ("A step's life", "Where is"):
        text = text.replace(section(title, text), "\n\n")
    return re.split(r"^## Recipes", text, flags=re.MULTILINE)[0]


def same_kind(folder: str) -> bool:
    return any(fnmatchcase(folder, pattern) for pattern in SAME_KIND)


def named(text: str) -> Counter[str]:
    """Count how often the tables of the map name each folder and file.

    A row names its folder (`server/sequencer/`), then files of it by their names alone (`inbox`); a file may also be
    named with its path (`server/app.py`).
    """
    found: Counter[str] = Counter()
    for line in (line for line in text.splitlines() if line.startswith("|")):
        folder = ""
        for match in re.finditer(r"`([\w./]+?)(\.py|/)?`", line):
            name, ending = match[1], match[2]
            if ending == "/":
                folder = source_path(f"{name}/").rstrip("/")
                found[folder] += 1
            elif folder and "/" not in name:
                file = f"{folder}/{name}.py"
                found[file] += (ROOT / file).is_file()
            elif ending == ".py":
                found[source_path(f"{name}.py")] += 1
    return found


def test_the_life_of_a_step_names_functions_that_exist() -> None:
    assert len(hops(page())) > 10
    assert missing_hops(page()) == []


def test_the_life_of_a_step_is_short() -> None:
    found = hops(page())
    assert len(found) <= HOPS
    assert len({path for path, _ in found}) <= FILES


def test_the_look_up_table_names_files_that_exist() -> None:
    rows = table_rows(section("Where is", page()))
    assert len(rows) >= 12
    for row in rows:
        answers = paths(row[-1]) or [source_path(path) for path, _ in re.findall(r"`([\w./]+\.py):([\w.]+)`", row[-1])]
        assert answers, f"no file for: {row[0]}"
        assert [path for path in answers if not (ROOT / path).exists()] == [], row[0]


def test_every_package_and_file_is_named_once() -> None:
    counts = named(map_text(page()))
    files = [module.path for module in modules() if not module.is_package and not module.path.endswith("__main__.py")]
    files = [path for path in files if not same_kind(path.rpartition("/")[0])]
    folders = {module.path.rpartition("/")[0] for module in modules()} - {"src/noetl"}
    folders = {folder for folder in folders if not (same_kind(folder) and same_kind(folder.rpartition("/")[0]))}
    wrong = {path: counts[path] for path in sorted({*files, *folders}) if counts[path] != 1}
    assert wrong == {}, "each must be named exactly once"


SAMPLE = """# Architecture

| path | job |
|---|---|
| `src/noetl/model/` | `events` `messages` and words |

## A step's life
1. `model/events.py:Event` is a fact
2. `src/noetl/model/events.py:Nothing.here`
3. `nowhere.py:f`

## Where is …
| question | file |
|---|---|
| an event defined | `model/events.py` |
"""


def test_hops_are_read_and_compared_with_the_code() -> None:
    assert len(hops(SAMPLE)) == 3
    assert missing_hops(SAMPLE) == ["src/noetl/model/events.py: no Nothing.here", "nowhere.py: no such file"]


def test_names_are_counted_outside_the_two_sections() -> None:
    assert named(map_text(SAMPLE)) == {
        "src/noetl/model": 1, "src/noetl/model/events.py": 1, "src/noetl/model/messages.py": 1,
    }  # fmt: skip
    assert table_rows(section("Where is", SAMPLE)) == [["an event defined", "`model/events.py`"]]


def test_a_missing_section_is_seen() -> None:
    with pytest.raises(AssertionError, match="no section"):
        section("Somewhere else", SAMPLE)
