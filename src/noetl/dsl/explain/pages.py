"""Write the Markdown page of a kind, diagnostic, level, field, scope or filter.

`noetl explain` prints these pages, and the reference consists of them. Tested in tests/unit/dsl/test_explain.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from noetl.dsl.analysis.outcomes import ENVELOPE, ERROR_FIELDS, ERROR_KINDS, GATE_EVENTS, META_FIELDS
from noetl.dsl.analysis.scopes import BY_ROLE, SCOPES
from noetl.dsl.analysis.templates import Role
from noetl.dsl.checking.rule import Rule
from noetl.dsl.explain.wording import conditions, field_list, listed, rendering, type_words
from noetl.dsl.grammar.kinds import Kind
from noetl.dsl.grammar.titles import title
from noetl.dsl.grammar.types import Field, Level
from noetl.expr import Callee

_MOST_PATHS = 5
_SYMBOLS = {code: chr(0x2400 + code) for code in range(32) if code not in (9, 10)} | {127: "\u2421"}
# Where a scope can be read; roles that always go together share one entry.
ROLES: tuple[tuple[tuple[Role, ...], str], ...] = (
    (("workload",), "`workload`"),
    (("executor",), "`executor`"),
    (("keychain",), "`keychain`"),
    (("admit",), "gates"),
    (("loop",), "`loop`"),
    (("cursor",), "`loop.cursor`"),
    (("step_spec",), "a step's `spec`"),
    (("step_input",), "a step's `input`"),
    (("task_input",), "a task's fields"),
    (("task_rule", "task_then", "task_set"), "a task's policy and its `set`"),
    (("step_set", "arc_when", "arc_args", "arc_set"), "a step's `set` and its arcs"),
)


def text(blocks: Iterable[str]) -> str:
    """Join blocks of Markdown with blank lines between them."""
    return "\n\n".join(block.strip("\n") for block in blocks if block.strip()) + "\n"


def fenced(code: str, language: str = "yaml") -> str:
    """Return code as a fenced block; control characters become visible symbols."""
    return f"```{language}\n{code.translate(_SYMBOLS).rstrip()}\n```"


def meanings(entries: Mapping[str, str]) -> str:
    """Return names with their meanings as a Markdown list."""
    return "\n".join(f"- `{name}`: {meaning}" for name, meaning in entries.items())


def kind_page(kind: Kind) -> str:
    """Write the page of a tool kind."""
    return text(_kind(kind))


def _kind(kind: Kind) -> Iterator[str]:
    yield f"# {kind.name}"
    yield kind.summary
    yield kind.description
    if not kind.built:
        yield (
            "**This version of NoETL cannot run it.** `noetl validate` and `noetl register` warn of it, and an execution that "
            "needs it does not start."
        )
    elif kind.extra:
        yield f"It needs the extra `{kind.extra}` of NoETL on the worker."
    yield "## Inputs"
    yield "\n".join(field_list(kind.input)) or "None."
    yield " ".join(conditions(kind))
    yield "## Result"
    if kind.result is None:
        yield "Free-form."
    else:
        yield meanings(kind.result)
    if kind.helper:
        part, fields = kind.helper
        yield f"Rules can also read `outcome.{part}`:"
        yield meanings(fields)
    yield "## Examples"
    for example in kind.examples:
        yield f"{example.title}:"
        yield fenced(example.yaml)


def rule_page(rule: Rule) -> str:
    """Write the page of a diagnostic."""
    return text(
        [
            f"# {rule.code}: {rule.name}",
            f"{rule.severity.capitalize()}, about {_GROUPS[rule.group]}.",
            rule.summary,
            "## Why",
            rule.why,
            "## Fix",
            rule.fix,
            "## Reported",
            fenced(rule.bad, "yml"),
            "## Corrected",
            fenced(rule.good, "yml"),
        ]
    )


_GROUPS: dict[str, str] = {
    "reading": "reading the file",
    "shape": "the shape of the playbook",
    "names": "names",
    "templates": "templates",
    "graph": "the net",
    "tools": "tools",
    "dialects": "older spellings",
}


def level_page(level: Level, link: bool = False, heading: str = "#") -> str:
    """Write the page of a level: its fields and an example."""
    blocks = [f"{heading} {level.name.removeprefix('tools.')}", level.summary, "\n".join(field_list(level, link))]
    if level.open:
        blocks.append("Other keys are allowed.")
    if level.example:
        blocks.append(fenced(level.example))
    return text(blocks)


def field_page(field: Field, shown: str, held_by: Iterable[Level], paths: Iterable[str]) -> str:
    """Write the page of a field with all its positions."""
    facts = [f"- Type: {type_words(field.type)}"]
    if field.required:
        facts.append("- Required.")
    if field.default:
        facts.append(f"- Default: {field.default if ' ' in field.default else f'`{field.default}`'}")
    if field.aliases:
        facts.append(f"- Alias: {listed([f'`{alias}`' for alias in field.aliases], 'or')}")
    if field.example:
        facts.append(f"- Example: `{field.name}: {field.example}`")
    if field.rendered:
        facts.append(f"- {rendering(field)}")
    blocks = [f"# {shown}", field.summary, "\n".join(facts)]
    holders = dict.fromkeys(title(level) for level in held_by)
    blocks.append(f"A field of {listed(holders)}, at {listed(_where(paths))}.")
    return text(blocks)


def _where(paths: Iterable[str]) -> list[str]:
    """Return a few of the paths; those in the workbook repeat those in the workflow."""
    every = list(dict.fromkeys(paths))
    main = [path for path in every if not path.startswith("workbook.")] or every
    shown = [f"`{path}`" for path in main[:_MOST_PATHS]]
    return [*shown, f"{len(main) - len(shown)} more places"] if len(main) > len(shown) else shown


def callee_page(callee: Callee) -> str:
    """Write the page of a filter, a test or a function."""
    return text([f"# {callee.name}", callee.summary, fenced(f"{{{{ {callee.signature} }}}}", "jinja")])


def scope_page(name: str) -> str:
    """Write the page of a scope: its content and where it can be read."""
    read_in = [words for roles, words in ROLES if all(name in BY_ROLE[role] for role in roles)]
    blocks = [f"# {name}", SCOPES[name], f"Readable in {'; '.join(read_in)}."]
    if name in ("outcome", "output"):
        blocks += ["## Fields", meanings(ENVELOPE), f"## {name}.error", meanings(ERROR_FIELDS)]
        blocks += [f"Error kinds: {listed([f'`{kind}`' for kind in ERROR_KINDS])}."]
        blocks += [f"## {name}.meta", meanings(META_FIELDS)]
    if name == "event":
        blocks += ["## event.name", meanings(GATE_EVENTS)]
    return text(blocks)
