"""Complete keys. Tested in tests/unit/authoring/completion/test_fields.py."""

from __future__ import annotations

from noetl.authoring.analysis.reading import Reading
from noetl.authoring.completion.items import Item
from noetl.authoring.language.describe import field_text
from noetl.authoring.language.grammar_at import Spot, level_of, options
from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type
from noetl.dsl.reading.nodes import MapNode

_INLINE = (Text, Flag, Number, Choice)


def field_items(spot: Spot, mark: str, *, separated: bool) -> list[Item]:
    """Return the missing fields; `separated` if a colon already follows the cursor."""
    items: list[Item] = []
    for level in _levels(spot):
        for field in level.fields:
            if not _is_there(field, spot.owner, mark) and all(item.label != field.name for item in items):
                items.append(_item(field, level, spot, separated=separated))
    return items


def _levels(spot: Spot) -> list[Level]:
    if spot.level is not None:
        return [spot.level, *spot.also]
    if spot.owner is not None:
        return []
    return [level_of(option) for option in options(spot.type) if isinstance(option, LevelOf)]


def _is_there(field: Field, owner: MapNode | None, mark: str) -> bool:
    # A merged key may still be written explicitly, and then wins.
    own = [entry.key for entry in owner if owner.start <= entry.key.start <= owner.end] if owner else []
    written = {key.text for key in own if mark not in key.text}
    return not written.isdisjoint((field.name, *field.aliases))


def _item(field: Field, level: Level, spot: Spot, *, separated: bool) -> Item:
    quote = spot.node_style
    name = field.name
    insert = name if separated else f"{name}{quote}: " if quote or _is_inline(field.type) else f"{name}:"
    return Item(
        label=name,
        kind="field",
        detail=field.summary,
        text=field_text(field, level),
        insert=insert,
        rank=0 if field.required else 1 if spot.tool is None or spot.tool.input.field(name) else 2,
    )


def _is_inline(kind: Type) -> bool:
    first = kind.options[0] if isinstance(kind, OneOf) else kind
    return isinstance(first, _INLINE) or not isinstance(first, LevelOf | ListOf | MapOf)


def free_key_items(reading: Reading, spot: Spot, mark: str) -> list[Item]:
    """Return known keys for maps with free keys: targets of `set` and of reducers."""
    names = reading.subject.names
    parent = spot.path[-2] if len(spot.path) > 1 else ""
    step = reading.step_at(spot.node.start)
    if parent == "set_ctx":
        return [_key(name) for name in sorted(names.ctx) if mark not in name]
    if parent not in ("set", "reduce"):
        return []
    keys = [f"ctx.{name}" for name in sorted(names.ctx)]
    if parent == "set" and step is not None:
        keys += [f"iter.{name}" for name in sorted(names.iter.get(step, ()))]
        keys += [f"step.{name}" for name in sorted(names.scratch.get(step, ()))]
        keys += ["ctx.", "iter.", "step."]
    return [_key(key) for key in keys if mark not in key]


def _key(name: str) -> Item:
    return Item(name, "key", insert=name if name.endswith(".") else f"{name}: ", rank=2 if name.endswith(".") else 1)
