"""The names that a worker's templates see, and the rendering of a tool's inputs.

Fixed names come first, then labels, then bare names: args, ctx, iter, results of steps, workload. An undefined value in
an input is an error that names the field and the nearest known name. SQL is rendered by lexical place, so that values
are quoted. Tested in tests/unit/engine/pipeline/test_names.py.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from noetl.dsl.grammar.kinds import Kind
from noetl.dsl.grammar.types import Field, LevelOf, ListOf, MapOf, OneOf, Text, Type
from noetl.dsl.secret_names import is_secret_name
from noetl.dsl.tree.playbook import Value
from noetl.engine.plan.plan import template
from noetl.engine.state.writes import plain
from noetl.expr import Fuel, Template, TemplateError, Undefined, compile_template, first_undefined, has_template
from noetl.expr.names import did_you_mean
from noetl.expr.sql.statements import Dialect, render_sql

_SHOWN: Final = 200
_KEYCHAIN: Final = frozenset({"keychain"})
_ANY: Final = Type()
_AS_IT_IS: Final = (int, float, type(None))
_DIALECTS: Final[Mapping[str, Dialect]] = {"duckdb": "duckdb", "ducklake": "duckdb", "snowflake": "snowflake"}
Functions = Mapping[str, Callable[..., Any]]


class _Sql(NamedTuple):
    """SQL dialect of a tool; `percent`: the driver binds values, so `%` is escaped."""

    dialect: Dialect
    percent: bool = False


class RenderError(Exception):
    """A value of a task cannot be rendered; `where` is its path in the task."""

    def __init__(self, where: str, message: str, fix: str | None = None) -> None:
        super().__init__(f"`{where}`: {message}" + (f"; {fix}" if fix else ""))


class Names(Mapping[str, Any]):
    """Root names: fixed, then layers in order; `own` cannot be overridden."""

    __slots__ = ("_fixed", "_layers", "_own")

    def __init__(
        self, fixed: Mapping[str, Any], layers: Sequence[Mapping[str, Any]], own: Mapping[str, Any] | None = None
    ) -> None:
        self._fixed = fixed
        self._layers = layers
        self._own = own or {}

    def __getitem__(self, name: str) -> Any:
        if name in self._fixed:
            return self._fixed[name]
        for layer in self._layers:
            if name in layer:
                return layer[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for layer in (self._fixed, *self._layers) for name in layer))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def over(self, **fixed: Any) -> Names:
        """Return these names with more fixed ones."""
        return Names({**self._fixed, **fixed, **self._own}, self._layers, self._own)


class Renderer:
    """Renders the values of one attempt; `gather` runs on the first template only."""

    __slots__ = ("_gather", "_names", "at", "fuel", "key", "statuses", "strict")

    def __init__(
        self,
        gather: Callable[[], Names],
        key: str,
        at: int,
        statuses: Mapping[str, str],
        strict: bool = True,
        fuel: Fuel | None = None,
    ) -> None:
        self._gather = gather
        self._names: Names | None = None
        self.fuel = fuel or Fuel()  # of all templates of the attempt
        self.key = key
        self.at = at
        self.statuses = statuses
        self.strict = strict

    @property
    def names(self) -> Names:
        """The names that templates see."""
        names = self._names
        if names is None:
            names = self._names = self._gather()
        return names

    def over(self, **fixed: Any) -> Renderer:
        """Return a renderer with more names."""
        return Renderer(lambda: self.names.over(**fixed), self.key, self.at, self.statuses, self.strict, self.fuel)

    def functions(self, where: str) -> Functions:
        """Return the functions that depend on the work, the field and the time."""
        calls = 0

        def gen_uuid() -> str:
            nonlocal calls
            calls += 1
            return str(uuid5(NAMESPACE_OID, f"{self.key}\n{where}\n{calls}"))

        return {
            "now": lambda: datetime.fromtimestamp(self.at / 1000, UTC),
            "gen_uuid": gen_uuid,
            "done": lambda step: self.statuses.get(step) in ("ok", "error"),
            "ok": lambda step: self.statuses.get(step) == "ok",
            "fail": lambda step: self.statuses.get(step) == "error",
        }

    def value(self, data: Any, where: str) -> Any:
        """Render every template in a value to plain data. Raises RenderError."""
        if isinstance(data, str):
            return self._text(data, where)
        if isinstance(data, _AS_IT_IS):
            return data
        if isinstance(data, Mapping):
            return {key: self.value(item, f"{where}.{key}") for key, item in data.items()}
        if isinstance(data, list | tuple):
            return [self.value(item, f"{where}[{index}]") for index, item in enumerate(data)]
        return data

    def values(self, values: Mapping[str, Value], where: str) -> dict[str, Any]:
        """Render a map of values."""
        return {name: self.value(value.data, f"{where}.{name}" if where else name) for name, value in values.items()}

    def fields(self, values: Mapping[str, Value], kind: Kind | None, name: str) -> dict[str, Any]:
        """Render the inputs of a tool; code is left as is, SQL values are quoted."""
        if is_literal(values):
            return {key: value.data for key, value in values.items()}
        rendered: dict[str, Any] = {}
        sql = _Sql(_DIALECTS.get(name, "postgres"))
        # `params` first, because SQL is rendered differently with them.
        for key in sorted(values, key=lambda key: key != "params"):
            field = kind.input.field(key) if kind is not None else None
            rendered[key] = self._field(values[key].data, field, key, sql)
            if key == "params" and name == "postgres":
                sql = _Sql(sql.dialect, percent=bool(rendered[key]))
        return {key: rendered[key] for key in values}

    def _text(self, text: str, where: str) -> Any:
        if not has_template(text):
            return text
        try:
            compiled = compile_template(text)
            functions, budget = self.functions(where), self.fuel.budget()
            value = compiled.evaluate(self.names, functions=functions, strict=self.strict, budget=budget)
        except TemplateError as error:
            raise RenderError(where, error.message, error.fix) from None
        return self._plain(value, where)

    def _plain(self, value: Any, where: str) -> Any:
        missing = first_undefined(value) if self.strict else None
        if missing is not None:
            fix = did_you_mean(missing.candidates) or "give it a value, or write `| default(…)` after it"
            raise RenderError(where, missing.describe(), fix)
        try:
            return plain(value)
        except TemplateError as error:
            raise RenderError(where, error.message, error.fix) from None

    def _field(self, data: Any, field: Field | None, where: str, sql: _Sql) -> Any:
        if field is not None and not field.rendered:
            return data
        return self._typed(data, field.type if field is not None else _ANY, where, sql)

    def _typed(self, data: Any, type_: Type, where: str, sql: _Sql) -> Any:
        if type(type_) is Type:
            return self.value(data, where)
        options = type_.options if isinstance(type_, OneOf) else (type_,)
        if isinstance(data, str):
            is_sql = any(isinstance(option, Text) and option.code == "sql" for option in options)
            return self._sql(data, where, sql) if is_sql else self._text(data, where)
        if isinstance(data, Mapping):
            level = next((option.own for option in options if isinstance(option, LevelOf)), None)
            inner = next((option.value for option in options if isinstance(option, MapOf)), _ANY)
            return {
                key: self._field(item, level.field(key), f"{where}.{key}", sql)
                if level is not None
                else self._typed(item, inner, f"{where}.{key}", sql)
                for key, item in data.items()
            }
        if isinstance(data, list | tuple):
            item_type = next((option.item for option in options if isinstance(option, ListOf)), _ANY)
            return [self._typed(item, item_type, f"{where}[{index}]", sql) for index, item in enumerate(data)]
        return data

    def _sql(self, text: str, where: str, sql: _Sql) -> Any:
        if not has_template(text):
            return text
        try:
            compiled = compile_template(text)
            functions, budget = self.functions(where), self.fuel.budget()
            options = sql._asdict()
            value = render_sql(compiled, self.names, functions, strict=self.strict, budget=budget, **options)
        except TemplateError as error:
            raise RenderError(where, error.message, error.fix) from None
        return self._plain(value, where)


def is_literal(values: Mapping[str, Value]) -> bool:
    """Return whether all values are scalars without a template."""
    for value in values.values():
        data = value.data
        if not isinstance(data, _AS_IT_IS) and (not isinstance(data, str) or has_template(data)):
            return False
    return True


def reads_secret(data: Any) -> bool:
    """Return whether a template in a value reads `keychain`."""
    return reads_any(data, _KEYCHAIN)


def reads_any(data: Any, names: Container[str]) -> bool:
    """Return whether a template in a value reads one of these root names."""
    return any(read.path[0] in names for compiled in _templates(data) for read in compiled.reads)


def _templates(data: Any) -> Iterator[Template]:
    if isinstance(data, str):
        compiled = template(data)
        if compiled is not None:
            yield compiled
    elif isinstance(data, Mapping | list | tuple):
        for item in data.values() if isinstance(data, Mapping) else data:
            yield from _templates(item)


def shown(value: Any, path: str = "", is_secret: Callable[[Any], bool] | None = None) -> Any:
    """Return a value for a record: plain, short, and masked if secret.

    `is_secret` says whether a text contains a secret, half of which could not be recognised after a cut.
    """
    if isinstance(value, Undefined):
        return "(undefined)"
    if path == "keychain" or path.startswith(("keychain.", "keychain[")):
        return "(secret)"
    if isinstance(value, str) and value and is_secret_name(path):
        return "(secret)"
    data = plain(value) if not isinstance(value, list | dict) or len(value) <= _SHOWN else value
    if isinstance(data, str) and len(data) > _SHOWN:
        return "(secret)" if is_secret is not None and is_secret(data) else data[:_SHOWN] + "…"
    if isinstance(data, list | dict) and (data is value or len(repr(data)) > _SHOWN):
        return f"({'list' if isinstance(data, list) else 'map'} of {len(data)})"
    return data
