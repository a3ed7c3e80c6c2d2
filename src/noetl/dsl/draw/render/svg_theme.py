"""Theme of SVG drawings: colors for light and dark mode, and icons."""

from __future__ import annotations

MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif"

_FAMILIES: dict[str, tuple[str, ...]] = {
    "net": ("http", "nats", "mcp"),
    "code": ("python", "shell", "script", "container"),
    "data": ("postgres", "duckdb", "ducklake", "snowflake", "transfer"),
    "call": ("playbook", "workbook"),
    "time": ("sleep", "wait"),
    "keep": ("secrets", "artifact", "resolve"),
}
FAMILY: dict[str, str] = {kind: family for family, kinds in _FAMILIES.items() for kind in kinds}

_LIGHT = {
    "paper": "#ffffff", "box": "#f8fafc", "edge": "#cbd5e1", "ink": "#0f172a", "dim": "#475569", "line": "#64748b",
    "fail": "#c2410c", "back": "#6d28d9", "undo": "#b45309", "pill": "#e2e8f0", "token": "#0f172a",
    "net": "#2563eb", "code": "#ca8a04", "data": "#0d9488", "call": "#7c3aed", "time": "#db2777", "keep": "#4d7c0f",
    "other": "#64748b",
}  # fmt: skip
_DARK = {
    "paper": "#0f172a", "box": "#1e293b", "edge": "#475569", "ink": "#f1f5f9", "dim": "#cbd5e1", "line": "#94a3b8",
    "fail": "#fb923c", "back": "#c4b5fd", "undo": "#fbbf24", "pill": "#334155", "token": "#f1f5f9",
    "net": "#60a5fa", "code": "#facc15", "data": "#2dd4bf", "call": "#a78bfa", "time": "#f472b6", "keep": "#a3e635",
    "other": "#94a3b8",
}  # fmt: skip
_LINES = ("line", "fail", "back", "undo")
_FILLS = (*_FAMILIES, "other")


def style() -> str:
    """Return the style sheet: light by default, dark where the reader prefers it."""
    return f"{_SHAPES}{_colours(_LIGHT)}@media (prefers-color-scheme:dark){{{_colours(_DARK)}}}"


_SHAPES = (
    f"text{{font-family:{MONO}}}.sans{{font-family:{SANS}}}"
    ".name{font-size:14px;font-weight:600}.small{font-size:11px}.said{font-size:10.5px}.head{font-size:15px;font-weight:600}"
    ".link{fill:none;stroke-width:1.4}.fail{stroke-dasharray:none}.back{stroke-dasharray:6 4}.undo{stroke-dasharray:2 3}"
    ".box{stroke-width:1.2}.entry .box{stroke-width:2}.final .box{stroke-width:2}"
    ".unknown .box{stroke-dasharray:6 4}.unreachable{opacity:.55}.unreachable .box{stroke-dasharray:2 3}"
    ".icon{fill:none;stroke-width:1.4;stroke-linecap:round;stroke-linejoin:round}"
)


def _colours(colours: dict[str, str]) -> str:
    rules = [
        f".paper{{fill:{colours['paper']}}}",
        f".box,.stack{{fill:{colours['box']};stroke:{colours['edge']}}}",
        f".final .box{{stroke:{colours['call']}}}",
        f".unknown .box{{stroke:{colours['fail']}}}",
        f"text{{fill:{colours['ink']}}}.dim{{fill:{colours['dim']}}}.warn{{fill:{colours['fail']}}}",
        f".pill{{fill:{colours['pill']}}}.icon{{stroke:{colours['dim']}}}",
        f".token{{fill:{colours['token']};stroke:{colours['token']}}}",
        f".port{{fill:{colours['paper']};stroke:{colours['line']};stroke-width:1.4}}.bar{{fill:{colours['line']}}}",
        f".entry .box{{stroke:{colours['ink']}}}",
    ]
    rules += [f".{name}{{stroke:{colours[name]}}}.head-{name}{{fill:{colours[name]}}}" for name in _LINES]
    rules += [f".say-{name}{{fill:{colours[name]}}}" for name in _LINES if name != "line"]
    rules += [f".{name}-work{{fill:{colours[name]}}}" for name in _FILLS]
    return "".join(rules)


# Icons of 12 by 12, drawn with lines.
ICONS: dict[str, str] = {
    "loop": "M10 4.2A4.4 4.4 0 1 0 10.4 7.2M10.4 1.6V4.4H7.6",
    "gate": "M2.5 5.5H9.5V10.5H2.5ZM4 5.5V3.8A2 2 0 0 1 8 3.8V5.5",
    "join": "M2 1.5C2 5 6 4.5 6 7.5M10 1.5C10 5 6 4.5 6 7.5M6 7.5V10.5M4.3 9L6 10.8L7.7 9",
    "final": "M3 1.5V10.5M3 2H9.5L7.8 4.3L9.5 6.6H3",
    "undo": "M3.8 2L1.8 4L3.8 6M2 4H7.5A2.8 2.8 0 0 1 7.5 9.6H4.5",
    "time": "M6 1.5A4.5 4.5 0 1 0 6 10.5A4.5 4.5 0 1 0 6 1.5M6 3.5V6L7.8 7.2",
}
