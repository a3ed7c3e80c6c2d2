"""Generate the JSON Schema of playbooks from the grammar and the kinds.

Accepts every playbook of valid shape; `validate` checks the rest. Tested in tests/unit/dsl/test_json_schema.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from noetl.dsl.grammar import LEVELS, cursor_level, task_level, task_spec_level
from noetl.dsl.grammar.kinds import Kind, Kinds, Need
from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type
from noetl.dsl.reading.nodes import plain
from noetl.dsl.reading.parse import parse

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"  # an identifier; never fetched
_TEMPLATE = "template"
_LABELLED = (MapOf(LevelOf("task")), MapOf(LevelOf("workbook_task")))  # `label: {kind: …}`: one label for one task
_RULE_LEVELS = ("task_rule", "admit_rule")
_NULL: Schema = {"type": "null"}
_RULE_FORMS: list[Schema] = [  # `when` with `then`; an `else` that holds `then`; an `else` next to `then`
    {"required": ["when", "then"], "properties": {"when": {"not": _NULL}, "then": {"not": _NULL}}},
    {"required": ["else"], "properties": {"when": _NULL, "else": {"type": "object"}}},
    {"required": ["else", "then"], "properties": {"when": _NULL, "then": {"not": _NULL}}},
]
_BESIDE_A_TOOL = ("name", "desc")  # keys of a workbook entry whose task is under `tool`


def schema(kinds: Kinds) -> Schema:
    """Return the JSON Schema (2020-12) of a playbook, and of a subscription."""
    writer = _Writer(kinds)
    is_subscription = {"properties": {"kind": {"const": "Subscription"}}, "required": ["kind"]}
    root = {"if": is_subscription, "then": writer.ref(LEVELS["subscription"]), "else": writer.level(LEVELS["playbook"])}
    return _finished(writer, root, "noetl:playbook", "NoETL playbook")


def level_schema(level: Level, name: str, title: str) -> Schema:
    """Return the JSON Schema (2020-12) of a document whose root is this level."""
    return _document(_Writer({}), level, name, title)


def _document(writer: _Writer, level: Level, name: str, title: str) -> Schema:
    return _finished(writer, writer.level(level), name, title)


def _finished(writer: _Writer, root: Schema, name: str, title: str) -> Schema:
    return {"$schema": DIALECT, "$id": name, "title": title, **root, "$defs": dict(sorted(writer.defs.items()))}


class _Writer(Struct, frozen=True):
    kinds: Kinds
    defs: dict[str, Schema] = {}

    def ref(self, level: Level) -> Schema:
        name = level.name.replace(":", ".")
        if name not in self.defs:
            self.defs[name] = {}  # a level may contain itself
            match level.name:
                case "task":
                    self.defs[name] = self.task(level)
                case "cursor":
                    self.defs[name] = self.cursor(level)
                case "workbook_task":
                    self.defs[name] = self.workbook_task(level)
                case _:
                    self.defs[name] = self.level(level)
        return {"$ref": f"#/$defs/{name}"}

    def level(self, level: Level, required: Iterable[Field] | None = None) -> Schema:
        written: Schema = {"type": "object", "description": level.summary, "properties": self.properties(level)}
        needed = [known for known in level.fields if known.required] if required is None else list(required)
        alone = [known.name for known in needed if not known.aliases]
        if alone:
            written["required"] = alone
        spelled = [_any_of([{"required": [name]} for name in _names(known)]) for known in needed if known.aliases]
        if spelled:
            written["allOf"] = spelled
        if not level.open:
            written["additionalProperties"] = False
        if level.name in _RULE_LEVELS:
            written["anyOf"] = _RULE_FORMS
        return written

    def properties(self, level: Level) -> Schema:
        written: Schema = {}
        of_a_tool = level.name.startswith(("task:", "tools."))
        for known in level.fields:
            value = self.value(known, may_be_blank=of_a_tool)
            written[known.name] = value
            for alias in known.aliases:
                written[alias] = {**value, "description": f"{known.summary} Alias of `{known.name}`."}
        return written

    def value(self, known: Field, may_be_blank: bool) -> Schema:
        """Write the schema of a field's value, with the description that editors show."""
        written = self.type(known.type, bool(known.rendered))
        if not known.required:
            written = _or_null(written)
        elif isinstance(known.type, Text) and not may_be_blank:
            written = {**written, "pattern": r"\S"}
        description = known.summary
        default = _default(known)
        if default is not None:
            written = {**written, "default": default}
        elif known.default:
            description = f"{description} Default: {known.default}."
        if known.example:
            written = {**written, "examples": [plain(parse(known.example).root)]}
        return {"description": description, **written}

    def type(self, kind: Type, rendered: bool) -> Schema:
        """Write the schema of a type; a rendered field also accepts a template."""
        match kind:
            case Text(length=(fewest, _)):  # a template may be longer than what it renders
                return {"type": ["string", "number", "boolean"], "minLength": fewest}
            case Text():
                # A text field accepts a plain number or boolean.
                return {"type": ["string", "number", "boolean"]}
            case OneOf(options, pick):
                return _any_of([self.option(option, rendered, picked=pick is not None) for option in options])
        written = self.shaped(kind, rendered)
        return _any_of([written, self.template()]) if rendered and written else written

    def option(self, kind: Type, rendered: bool, picked: bool) -> Schema:
        written = self.type(kind, rendered)
        if picked and kind in _LABELLED:
            return {**written, "minProperties": 1, "maxProperties": 1}
        return written

    def shaped(self, kind: Type, rendered: bool) -> Schema:
        match kind:
            case Flag():
                return {"type": "boolean"}
            case Number(integer, least, most):
                bounds = {"minimum": least, "maximum": most}
                limits = {name: bound for name, bound in bounds.items() if bound is not None}
                return {"type": "integer" if integer else "number", **limits}
            case Choice(words, prefixes, synonyms):
                chosen: Schema = {"enum": [*words, *(other for other, _ in synonyms)]}
                return _any_of([chosen, *({"type": "string", "pattern": f"^{prefix}."} for prefix in prefixes)])
            case ListOf(item, least):
                return {"type": "array", "items": self.type(item, rendered), **({"minItems": least} if least else {})}
            case MapOf(value):
                return {"type": "object", "additionalProperties": self.type(value, rendered) or True}
            case LevelOf(name, own):
                return self.ref(own or LEVELS[name])
        return {}

    def template(self) -> Schema:
        self.defs.setdefault(
            _TEMPLATE,
            {"type": "string", "pattern": r"\{[{%]", "description": "A template, such as `{{ workload.name }}`."},
        )
        return {"$ref": f"#/$defs/{_TEMPLATE}"}

    def task(self, level: Level) -> Schema:
        choices = [{"const": kind.name, "description": kind.summary} for kind in self.kinds.values()]
        about = level.field("kind")
        return {
            "type": "object",
            "description": level.summary,
            "properties": {"kind": {"description": about.summary if about else "", "oneOf": choices}},
            "required": ["kind"],
            "allOf": [
                {"if": {"properties": {"kind": {"const": kind.name}}, "required": ["kind"]}, "then": self.task_of(kind)}
                for kind in self.kinds.values()
            ],
        }

    def cursor(self, level: Level) -> Schema:
        own = {kind.name: cursor_level(kind) for kind in self.kinds.values()}
        more = {name: level_of_kind for name, level_of_kind in own.items() if level_of_kind is not level}
        fits: list[Schema] = [
            {"if": {"properties": {"kind": {"const": name}}, "required": ["kind"]}, "then": self.ref(level_of_kind)}
            for name, level_of_kind in more.items()
        ]
        other = {"if": {"properties": {"kind": {"enum": list(more)}}, "required": ["kind"]}, "else": self.level(level)}
        return {"type": "object", "description": level.summary, "allOf": [*fits, other]}

    def task_of(self, kind: Kind) -> Schema:
        level = task_level(kind)
        name = level.name.replace(":", ".")
        written = self.level(level, required=())
        written["properties"]["kind"] = {"const": kind.name, "description": kind.summary}
        spec = _or_null(self.ref(task_spec_level(kind)))
        written["properties"]["spec"] = {"description": _summary(level, "spec"), **spec}
        rules = list(_rules(kind))
        self.defs[name] = {**written, "allOf": rules} if rules else written
        return {"$ref": f"#/$defs/{name}"}

    def workbook_task(self, level: Level) -> Schema:
        properties = self.properties(level)
        beside = {name: properties[name] for known in _BESIDE_A_TOOL for name in _names_in(level, known)}
        return {
            "type": "object",
            "description": level.summary,
            "if": {"properties": {"tool": {"type": "object"}}, "required": ["tool"]},
            "then": {"properties": {**beside, "tool": properties["tool"]}, "additionalProperties": False},
            "else": self.ref(LEVELS["task"]),
        }


def _any_of(options: list[Schema]) -> Schema:
    flat: list[Schema] = []
    for option in options:
        flat += option["anyOf"] if list(option) == ["anyOf"] else [option]
    if any(not option for option in flat):
        return {}
    simple = [option["type"] for option in flat if list(option) == ["type"]]
    types = list(dict.fromkeys(name for one in simple for name in ([one] if isinstance(one, str) else one)))
    rest = [option for option in flat if list(option) != ["type"]]
    merged: list[Schema] = [*rest, {"type": types if len(types) > 1 else types[0]}] if types else rest
    unique = [option for number, option in enumerate(merged) if option not in merged[:number]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def _or_null(schema: Schema) -> Schema:
    """Allow null, which means the same as a missing key."""
    return _any_of([schema, {"type": "null"}]) if schema else schema


def _names(known: Field) -> tuple[str, ...]:
    return (known.name, *known.aliases)


def _names_in(level: Level, name: str) -> tuple[str, ...]:
    known = level.field(name)
    return _names(known) if known else ()


def _summary(level: Level, name: str) -> str:
    known = level.field(name)
    return known.summary if known else ""


def _default(known: Field) -> Any:
    try:
        value = json.loads(known.default)
    except ValueError:
        value = known.default
    return value if value != "" and _fits(value, known.type) else None


def _fits(value: Any, kind: Type) -> bool:
    match kind:
        case Flag():
            return isinstance(value, bool)
        case Number():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case Choice() as choice:
            return isinstance(value, str) and choice.meant(value) in choice.words
        case Text():
            return isinstance(value, str) and " " not in value
        case OneOf(options):
            return any(_fits(value, option) for option in options)
    return False


def _rules(kind: Kind) -> Iterator[Schema]:
    own = {known.name: known for known in kind.input.fields}
    for known in own.values():
        if known.required:
            yield _written(known)
    for group in kind.one_of:
        yield {"oneOf": [_written(own[name]) for name in group]}
    for group in kind.at_most_one:
        yield _any_of(
            [
                {"not": _any_of([_written(own[name]) for name in group])},
                {"oneOf": [_written(own[name]) for name in group]},
            ]
        )
    for need in (one for one in kind.needs if not one.instead):  # else an arc may give it
        yield {"if": _applies(need, own[need.field]), "then": {"allOf": [_written(own[name]) for name in need.fields]}}


def _written(known: Field) -> Schema:
    here = [_on_task(name, {"not": _NULL}) for name in _names(known)]
    return {"anyOf": [option for there in here for option in (there, _under_spec(there))]}


def _on_task(name: str, value: Schema | None = None) -> Schema:
    return {"required": [name], **({"properties": {name: value}} if value else {})}


def _under_spec(there: Schema) -> Schema:
    return {"required": ["spec"], "properties": {"spec": {"type": "object", **there}}}


def _applies(need: Need, known: Field) -> Schema:
    value: Schema = {"not": {"type": "null"}} if need.value is None else {"const": need.value}
    places = [place for name in _names(known) for place in (_on_task(name, value), _under_spec(_on_task(name, value)))]
    if need.value is not None and known.default == need.value:
        return {"anyOf": [*places, {"not": _written(known)}]}
    return {"anyOf": places}
