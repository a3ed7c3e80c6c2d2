"""Strategies that write random YAML in every layout, common and odd.

Every comment carries a number (`# c12`) and no value does, so that a test can find the comments again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

WORDS = [
    "a", "step", "x y", "näh", "日本", "😀", "v1.0", "a-b", "https://h/p?q=1", "it's", 'say"so"', "1", "0x1F", "-3.5e2",
]  # fmt: skip
PLAIN = [
    *WORDS,
    "true",
    "null",
    "~",
    "yes",
    "012",
    "1_000",
    "12:30",
    "2024-01-01",
    "a#b",
    "a:b",
    "?x",
    "-x",
    "<<x",
    "C:\\d",
]
KEYS = ["a", "b", "step", "kind", "tool", "next", "workflow", "1", "true", "a b", "ключ", "x-y", "😀k"]
QUOTED = ["", " ", "x", "{{ a.b }}", "a: b", "#no", "  lead", "trail  ", "\\", "é😀", "a,b]", "- x", "%d", "tab\there"]
ESCAPES = ["\\n", "\\t", '\\"', "\\\\", "\\x41", "\\u00e9", "\\U0001F600", "\\ ", "\\/", "\\_"]
BLOCK_LINES = [
    "text",
    "  deeper",
    "\tx",
    "",
    "",
    "key: value",
    "# hash",
    "- item",
    "trail  ",
    "{{ x }}",
    "é😀",
    "   ",
    "'\"",
]


@dataclass
class Writer:
    """Writes one document; knows which anchors exist and how many comments there are."""

    random: Random
    aliases: bool = True
    anchors: list[str] = field(default_factory=list)
    map_anchors: list[str] = field(default_factory=list)
    comments: int = 0
    anchor_count: int = 0

    def chance(self, one_in: int) -> bool:
        return self.random.randint(1, one_in) == one_in

    def pick(self, options: list[str]) -> str:
        return self.random.choice(options)

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def keys(self, low: int, high: int) -> list[str]:
        return self.random.sample(KEYS, self.number(low, high))

    def comment(self) -> str:
        self.comments += 1
        return f"#{self.pick([' ', '', '  '])}c{self.comments}{self.pick(['', ' more: text', ' - x'])}"

    def trailing(self) -> str:
        if self.chance(6):
            return " " * self.number(1, 3) + self.comment()
        return " " * self.number(0, 2) if self.chance(6) else ""

    def between(self, column: int) -> list[str]:
        """Comments and empty lines before an entry."""
        lines: list[str] = []
        while self.chance(5):
            lines.append(
                " " * self.number(0, column + 2) + self.comment() if self.chance(2) else " " * self.number(0, 3)
            )
        return lines

    def anchor(self, *, of_map: bool) -> str:
        if not self.aliases or not self.chance(8):
            return ""
        self.anchor_count += 1
        name = f"n{self.anchor_count}"
        (self.map_anchors if of_map else self.anchors).append(name)
        return f"&{name} "

    # Values: what stands on the line of the key or dash, and the lines below it

    def value(self, column: int, depth: int, *, in_list: bool) -> tuple[str, list[str]]:
        kinds = ["plain", "quoted", "flow", "block", "empty", "long", "alias"]
        if depth < 4:
            kinds += ["map", "map", "list", "list"]
        kind = self.pick(kinds)
        if kind == "map":
            return self.nested_map(column, depth)
        if kind == "list":
            return self.nested_list(column, depth, in_list=in_list)
        if kind == "block":
            return self.block(column)
        if kind == "long":
            return self.long(column)
        if kind == "flow":
            return self.flow(column)
        if kind == "empty":
            return "" + self.trailing(), []
        if kind == "alias" and self.anchors:
            return "*" + self.pick(self.anchors) + self.trailing(), []
        text = self.anchor(of_map=False) + (self.pick(PLAIN) if kind == "plain" else self.quoted())
        if self.chance(10):
            return "", [" " * (column + self.number(1, 4)) + text + self.trailing()]
        return text + self.trailing(), []

    def quoted(self) -> str:
        body = self.pick(QUOTED) + self.pick(["", " ", ""]) + self.pick(QUOTED)
        if self.chance(2):
            return "'" + body.replace("'", "''") + self.pick(["", "it''s"]) + "'"
        return '"' + body.replace("\\", "\\\\") + self.pick(["", *ESCAPES]) + '"'

    def long(self, column: int) -> tuple[str, list[str]]:
        """A plain or quoted value over several lines."""
        quote = self.pick(["", "'", '"'])
        lines = [self.pick(WORDS[:8]) for _ in range(self.number(2, 4))]
        if quote == '"':
            lines = [line + self.pick(["", "\\", "\\n", " \\", "\\ "]) for line in lines[:-1]] + lines[-1:]
        gaps = [[" " * self.number(0, 2)] if self.chance(4) else [] for _ in lines[1:]]
        indent = column + self.number(1, 5)
        below = [text for gap, line in zip(gaps, lines[1:], strict=True) for text in (*gap, " " * indent + line)]
        below[-1] += quote
        if self.chance(4):
            return "", [" " * indent + quote + lines[0], *below]
        return quote + lines[0] + self.pick(["", "  "]), below

    def block(self, column: int) -> tuple[str, list[str]]:
        style, chomp = self.pick(["|", ">"]), self.pick(["", "-", "+"])
        indent = self.number(1, 4)
        lines = [self.pick(BLOCK_LINES) for _ in range(self.number(0, 5))]
        first = next((line for line in lines if line), "text")
        leading_blank_is_long = any(not line.strip() and line for line in lines)
        indicator = str(indent) if first[0] == " " or leading_blank_is_long or self.chance(5) else ""
        header = style + (indicator + chomp if self.chance(2) else chomp + indicator)
        if self.chance(6):
            header += " " + self.comment()
        below = [" " * (column + indent) + line if line else " " * self.number(0, column) for line in lines]
        return self.anchor(of_map=False) + header, below

    # Collections

    def nested_map(self, column: int, depth: int) -> tuple[str, list[str]]:
        anchor = self.anchor(of_map=True).strip()
        name = self.map_anchors.pop() if anchor else ""
        lines = self.map_lines(column + self.number(1, 4), depth + 1)
        if name:
            self.map_anchors.append(name)
            self.anchors.append(name)
        return anchor + self.trailing(), lines

    def nested_list(self, column: int, depth: int, *, in_list: bool) -> tuple[str, list[str]]:
        return self.trailing(), self.list_lines(column + self.number(1 if in_list else 0, 4), depth + 1)

    def map_lines(self, column: int, depth: int) -> list[str]:
        lines: list[str] = []
        keys = self.keys(1, 4)
        if self.map_anchors and self.chance(3):
            lines.append(f"{' ' * column}<<: *{self.pick(self.map_anchors)}")
        for key in keys:
            lines.extend(self.between(column))
            shown = self.pick([key, key, f"'{key}'", f'"{key}"'])
            inline, below = self.value(column, depth, in_list=False)
            colon = self.pick([":", ":", ":", " :"])
            lines.append(" " * column + shown + colon + (" " * self.number(1, 3) + inline if inline else ""))
            lines.extend(below)
        return lines

    def list_lines(self, column: int, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.number(1, 3)):
            lines.extend(self.between(column))
            gap = self.number(1, 3)
            if depth < 4 and self.chance(2):  # a map or list that begins on the line of the dash
                inner = column + 1 + gap
                nested = self.map_lines(inner, depth + 1) if self.chance(2) else self.list_lines(inner, depth + 1)
                if nested[0].strip() and not nested[0].lstrip().startswith("#"):
                    lines.append(" " * column + "-" + " " * gap + nested[0][inner:])
                else:
                    lines.extend([" " * column + "-", nested[0]])
                lines.extend(nested[1:])
                continue
            inline, below = self.value(column, depth, in_list=True)
            lines.append(" " * column + "-" + (" " * gap + inline if inline else ""))
            lines.extend(below)
        return lines

    def flow(self, column: int) -> tuple[str, list[str]]:
        text = self.flow_text(0) + self.trailing()
        if not self.chance(3):
            return text, []
        parts = self.flow_text(0, separator="\0").split("\0")
        lines = [part + (" " * self.number(1, 2) + self.comment() if self.chance(4) else "") for part in parts]
        indent = " " * (column + self.number(1, 4))
        return lines[0], [indent + line.lstrip() for line in lines[1:]]

    def flow_text(self, depth: int, separator: str = "") -> str:
        pad, comma = self.pick(["", " "]), self.pick([",", ", ", " , "]) + separator
        size = self.number(0, 3)
        if self.chance(2):
            items = [self.flow_item(depth) for _ in range(size)]
            return "[" + pad + separator + comma.join(items) + pad + "]"
        keys = self.keys(size, size)
        entries = [self.flow_entry(key, depth) for key in keys]
        return "{" + pad + separator + comma.join(entries) + pad + "}"

    def flow_entry(self, key: str, depth: int) -> str:
        form = self.number(1, 6)
        if form == 1:
            return key
        if form == 2:
            return f'"{key}":{self.flow_item(depth)}'
        return f"{key}: {self.flow_item(depth)}"

    def flow_item(self, depth: int) -> str:
        if depth < 2 and self.chance(4):
            return self.flow_text(depth + 1)
        if self.anchors and self.chance(8):
            return f"*{self.pick(self.anchors)} "
        return self.pick(WORDS[:8]) if self.chance(2) else self.quoted()


def yaml_text(random: Random) -> str:
    """Write a document whose root is a block map, mostly well formed."""
    writer = Writer(random)
    lines = writer.between(0)
    if writer.chance(6):
        lines.append("---" + writer.trailing())
    lines += writer.map_lines(0, 0)
    lines += writer.between(0)
    if writer.chance(8):
        lines += ["..." + writer.trailing(), *writer.between(0)]
    newline = writer.pick(["\n", "\n", "\n", "\r\n"])
    return newline.join(lines) + (newline if not writer.chance(5) else "")


def yaml_texts() -> st.SearchStrategy[str]:
    """Documents of every kind; a seed gives more variety than many small draws."""
    return st.integers(0, 2**32).map(lambda seed: yaml_text(Random(seed))) | st.randoms().map(yaml_text)


def playbook_text(random: Random) -> str:
    """Write a playbook with keys in any order, comments anywhere and some aliases."""
    writer = Writer(random, aliases=False)
    step_keys = ["step", "desc", "spec", "loop", "input", "tool", "set", "next", "compensate"]

    def level(keys: list[str], column: int, values: dict[str, list[str]]) -> list[str]:
        lines: list[str] = []
        chosen = random.sample(keys, len(keys) if writer.chance(3) else writer.number(1, len(keys)))
        shared = ""
        for key in chosen + (["extra"] if writer.chance(6) else []):
            lines += writer.between(column)
            if key not in values and writer.chance(8):
                writer.anchor_count += not shared
                lines.append(" " * column + f"{key}: " + (f"*{shared}" if shared else f"&n{writer.anchor_count} x"))
                shared = shared or f"n{writer.anchor_count}"
                continue
            if key in values:
                lines += [" " * column + f"{key}:" + writer.trailing(), *values[key]]
                continue
            inline, below = writer.value(column, 3, in_list=False)
            lines += [" " * column + f"{key}: {inline}", *below]
        return lines

    def items(column: int, make: Callable[[int], list[str]]) -> list[str]:
        lines: list[str] = []
        for _ in range(writer.number(1, 3)):
            lines += writer.between(column)
            first, *rest = make(column + 2)
            is_key = bool(first.strip()) and not first.lstrip().startswith("#")
            lines += [" " * column + "- " + first[column + 2 :]] if is_key else [" " * column + "-", first]
            lines += rest
        return lines

    def step(column: int) -> list[str]:
        arcs = items(column + 4, lambda at: level(["step", "when", "args", "set", "label", "spec"], at, {}))
        tasks = items(column + 2, lambda at: level(["name", "kind", "url", "spec", "args"], at, {}))
        return level(step_keys, column, {"next": [" " * (column + 2) + "arcs:", *arcs], "tool": tasks})

    root_keys = ["apiVersion", "kind", "metadata", "keychain", "executor", "workload", "workbook", "workflow", "policy"]
    metadata = level(["name", "path", "version", "labels", "tags"], 2, {})
    lines = level(root_keys, 0, {"workflow": items(writer.number(0, 2), step), "metadata": metadata})
    return "\n".join(lines) + "\n"


def playbook_texts() -> st.SearchStrategy[str]:
    return st.integers(0, 2**32).map(lambda seed: playbook_text(Random(seed)))


# Texts that are mostly not YAML: for what must never crash. Pieces are separated by a tilde.
_PIECES = r"a~b~: ~:~- ~-~\n~\n  ~\n    ~\n\n~ ~\t~[~]~{~}~, ~&x ~*x~!!int ~!t ~'~\"~\\~#~ # c~|~>~|-~>+2~? ~<<: ~1~0o7~{{ x }}"
_MARKS = r"---\n~...\n~%TAG\n~@~`~\xe9~\U0001F600~\r\n~\u2028~null~'x'~\"y\""
_NOISE = [piece.encode().decode("unicode_escape") for piece in f"{_PIECES}~{_MARKS}".split("~")]
yaml_noise = st.lists(st.sampled_from(_NOISE), max_size=40).map("".join)
