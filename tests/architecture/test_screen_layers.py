"""The layers of the web UI: imports point down, and only `api/` fetches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

SOURCE = Path(__file__).parents[2] / "ui" / "src"
# Screens and the table of their addresses know each other; the rest stands in rows, the higher ones above the lower.
LAYERS = (
    ("main.tsx",), ("routes.tsx", "views"), ("editor",), ("graph", "timeline", "heat"), ("moments",), ("parts",), ("api",),
    ("words", "styles"),
)  # fmt: skip
LEVEL = {name: len(LAYERS) - at for at, names in enumerate(LAYERS) for name in names}
_IMPORT = re.compile(r"""(?:from|import)\s*\(?\s*["'](\.[^"']*)["']""")
_FETCHES = re.compile(r"(?<![\w.])fetch\(|new (?:EventSource|XMLHttpRequest|WebSocket)\(|\.sendBeacon\(")
_COMMENT = re.compile(r"/\*.*?\*/|^\s*//[^\n]*", re.DOTALL | re.MULTILINE)


def files() -> list[Path]:
    return sorted(one for one in SOURCE.rglob("*.ts*") if not one.name.endswith(".d.ts"))


def layer(path: Path) -> str:
    """Return the room of a file, as `LAYERS` names it."""
    first = path.relative_to(SOURCE).parts[0]
    return first if first in LEVEL else f"{first}.tsx"


def imports(path: Path, text: str) -> Iterator[Path]:
    for found in _IMPORT.findall(text):
        yield (path.parent / found).resolve()


def wrong_imports(path: Path, text: str) -> list[str]:
    """Return the imports of a file that point up, or to a room beside its own."""
    own = layer(path)
    found = []
    for target in imports(path, text):
        other = layer(target)
        if other != own and LEVEL[other] >= LEVEL[own] and {own, other} != {"routes.tsx", "views"}:
            found.append(f"{path.relative_to(SOURCE)} imports {target.relative_to(SOURCE)}")
    return found


def test_every_room_has_its_layer() -> None:
    assert len(files()) > 50
    assert {layer(path) for path in files()} <= set(LEVEL)


def test_imports_point_down() -> None:
    assert [one for path in files() for one in wrong_imports(path, path.read_text())] == []


def test_only_api_fetches() -> None:
    assert [
        str(path.relative_to(SOURCE))
        for path in files()
        if layer(path) != "api" and _FETCHES.search(_COMMENT.sub("", path.read_text()))
    ] == []


@given(st.sampled_from(sorted(LEVEL)), st.sampled_from(sorted(LEVEL)))
def test_an_import_that_points_up_is_found(own: str, other: str) -> None:
    path = SOURCE / own if own.endswith(".tsx") else SOURCE / own / "one.tsx"
    target = other.removesuffix(".tsx") if other.endswith(".tsx") else f"{other}/two"
    place = "./" if own.endswith(".tsx") else "../"
    found = wrong_imports(path, f'import {{ two }} from "{place}{target}";')
    may = own == other or LEVEL[other] < LEVEL[own] or {own, other} == {"routes.tsx", "views"}
    assert bool(found) is not may
