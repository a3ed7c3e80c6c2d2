"""Writes the reference pages in docs/reference/ from the code: language, kinds, events, settings, commands and more.

`pages()` gives every page with its text and touches no file, so that a test can hold the committed pages to it. What the pages
say is written in `noetl.dsl.explain`, and in bench/ for the benchmarks; here it is only put together. Tested in tests/docs/test_reference.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import typer
from typer.core import TyperArgument, TyperOption

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import flame, report
from bench.results import Results
from noetl.cli.app import COMMANDS, build
from noetl.cli.runtime.runner import EXIT_CODES, WAITING
from noetl.configuration import knobs
from noetl.dsl.draw.data import SHAPE
from noetl.dsl.explain.pages import kind_page, level_page, meanings, rule_page, scope_page, text
from noetl.dsl.explain.places import levels_of, places
from noetl.dsl.explain.topics import METHODS
from noetl.dsl.explain.words import listed
from noetl.dsl.grammar import LEVELS
from noetl.dsl.kinds import Kind
from noetl.dsl.rules import RULES
from noetl.dsl.scopes import SCOPES
from noetl.dsl.types import Field
from noetl.expr import FILTERS, FUNCTIONS, TESTS, Callee
from noetl.model.errors import InvalidInput
from noetl.model.events import EVENT_TYPES, Event
from noetl.settings import VARIABLES
from noetl.testing.cases.levels import LEVELS as TEST_LEVELS
from noetl.tools import MODULES
from noetl.wiring import language_kinds

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
NOTE = "<!-- Generated from the code by `make docs`: do not edit. -->\n"
GROUPS = {
    "reading": "Reading the file",
    "shape": "The shape of the playbook",
    "names": "Names",
    "templates": "Templates",
    "graph": "The net",
    "tools": "Tools",
    "dialects": "Older spellings",
}
INDEX = """\
# Reference

Every page here is written from the code, and a test holds it to the code. `noetl explain` prints the same texts.

- [Language](language.md): every map of a playbook with its fields
- [Tool kinds](kinds/README.md): what a task of each kind takes, gives and looks like
- [Expressions](expressions.md): filters, tests, functions, methods and scopes of templates
- [Diagnostics](diagnostics/README.md): every code of the checker, why it is reported and how to put it right
- [Command line](cli.md): every command with its options
- [Exit codes](exit-codes.md): what the commands end with
- [Events](events.md): everything that an execution's log can hold
- [Settings](settings.md): the environment variables, their defaults and what they are for
- [Tests](tests.md): every map of a file of tests, for `noetl test`
- [Graph as JSON](graph-json.md): what `noetl graph --format json` gives
- [Benchmarks](benchmarks.md): the newest run on one machine, beside other systems and the limits of the disk
"""
DIAGNOSTICS = """\
# Diagnostics

An **error** means that the playbook cannot run as it was meant; a **warning**, that it very likely does something else than it
says; a **hint** is worth knowing.
"""
KINDS = """\
# Tool kinds

A task names its kind: `kind: http`. The fields that every task has are those of [task](../language.md#task); the fields of the
kind stand beside them. Packages may bring further kinds.
"""
LANGUAGE = """\
# Language

Every map of a playbook with its fields, from the root down. A field that is not *required* may be left out. Other keys are
errors, unless a map says that they are allowed.
"""
EXPRESSIONS = """\
# Expressions

What stands between `{{` and `}}`: Jinja2's language over plain data. Why it is so is told in
[expressions](../explanation/expressions.md).

## Scopes

The names that a template can start from.
"""
TEST_FILES = """\
# Tests

Every map of a file of tests, `NAME.test.yaml` beside the playbook `NAME.yaml`, from the root down. How to write them is told in
[test a playbook](../how-to/test-a-playbook.md). `noetl schema tests` prints the same as a JSON Schema for editors.

Times are seconds, or texts such as `250ms`, `5m`, `1h30m` and `30d`. Tasks are named as `step`, as `step.task`, or with their
playbook before it: `payment:charge`. In what is expected, of a map the written keys are compared, a list is compared whole, and a
template is a condition that sees what was found as `value`, beside `status`, `result`, `ctx`, `error`, `workload`, `world` and
`route`. An invariant of a saga sees the same names, and as lists of steps `completed`, `undone`, `failed` and `stuck`, whose
compensation was given up.
"""
GRAPH = """\
# Graph as JSON

What `noetl graph FILE --format json` prints: one object for programs that draw or examine the net themselves. While `version`
stays the same, fields are added, never renamed or removed.
"""
EVENTS = """\
# Events

What the log of an execution can hold: `noetl events ID` prints it, `--type NAME` chooses. Conditions read the name as
`event.name`; there the older names mean the same.
"""
ENVELOPE = """\
## The envelope

`noetl events ID --json` prints one object per line with these keys, and `step`, the step it belongs to. Keys are added, never
renamed or removed.
"""
SETTINGS = """\
# Settings

A process takes its settings from the environment and from a configuration file: `$NOETL_CONFIG`, else `noetl.yaml` in the folder
of the store. Options of a command win over variables, and variables over the file. In the file the same names stand in lower
case without `NOETL_`, also as nested maps: `NOETL_RETRIES_PLUGIN_BASE_MS` is `retries: {plugin: {base_ms: 50}}`. Credentials
stand in the environment only.

```yaml
capacity: 32
retries:
  plugin: {max_attempts: 4, base_ms: 100}
timeouts: {tool_default_ms: 30000}
policies: {on_step_fail: halt}
```
"""
LAYERED_SETTINGS = """\
## For every execution

What a playbook says wins: the settings of a task are those of the configuration, of `executor.spec`, of the step, of its loop and
of the task, the later over the earlier; maps are merged, lists replaced. The configuration is the server's; a worker elsewhere is
told by its server, and its own is not asked.
"""
CODES = """\
# Exit codes

Commands that run or move an execution (`run`, `resume`, `signal`, `fork`, `cancel`, `unpause`) end by its status. Commands
that only look end with 0; what a check ends with is on [its own section](cli.md).
"""
CODE_WORDS = {
    "completed": "Everything was done.",
    "failed": "A step failed and nothing took care of it, the execution ran out of time, or the store could not be used.",
    "cancelled": "Somebody cancelled it; Ctrl-C does.",
    "partial": "It ended, and items of a loop with `failure.mode: best_effort` failed.",
}


def pages() -> dict[str, str]:
    """Give every reference page: its path below the folder, and its text."""
    kinds = {name: language_kinds()[name] for name in MODULES}
    found = {
        "README.md": INDEX,
        "benchmarks.md": report.page(Results.newest(), flame.kept()),
        "cli.md": cli(),
        "events.md": events(),
        "exit-codes.md": exit_codes(),
        "expressions.md": expressions(),
        "graph-json.md": graph_json(),
        "language.md": language(),
        "settings.md": settings(),
        "tests.md": tests(),
        "diagnostics/README.md": diagnostics(),
        "kinds/README.md": kinds_index(kinds),
    }
    found |= {f"diagnostics/{rule.code}.md": rule_page(rule) for rule in RULES}
    found |= {f"kinds/{kind.name}.md": kind_page(kind) for kind in kinds.values()}
    return {path: f"{NOTE}\n{written}" for path, written in sorted(found.items())}


def diagnostics() -> str:
    blocks = [DIAGNOSTICS]
    for group, heading in GROUPS.items():
        rows = [
            f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.severity} | {cell(rule.summary)} |"
            for rule in RULES
            if rule.group == group
        ]
        blocks += [f"## {heading}", "\n".join(["| code | name | severity | reported |", "|---|---|---|---|", *rows])]
    return text(blocks)


def cell(words: str) -> str:
    """Give words that may stand in a table."""
    return words.replace("|", "\\|")


def kinds_index(kinds: Mapping[str, Kind]) -> str:
    rows = [f"| [{kind.name}]({kind.name}.md) | {cell(kind.summary)} |" for kind in kinds.values()]
    return text([KINDS, "\n".join(["| kind | what it does |", "|---|---|", *rows])])


def language() -> str:
    where: dict[str, list[str]] = {}
    for place in places():
        for level in levels_of(place.field.type):
            where.setdefault(level.name, []).append(".".join(place.path))
    blocks = [LANGUAGE, "\n".join(f"- [{level.name}](#{level.name}): {level.summary}" for level in LEVELS.values())]
    for level in LEVELS.values():
        blocks.append(level_page(level, link=True, heading="##"))
        if level.name in where:
            paths = [path for path in where[level.name] if not path.startswith("workbook.")] or where[level.name]
            blocks.append(f"Stands at {listed(f'`{path}`' for path in dict.fromkeys(paths))}.")
    return text(blocks)


def tests() -> str:
    blocks = [TEST_FILES]
    for level in TEST_LEVELS:
        said = [f"## {level.name.removeprefix('test_')}", level.summary]
        blocks += [*said, "\n".join(map(test_field, level.fields))]
    return text(blocks)


def test_field(field: Field) -> str:
    """Write one key of a file of tests."""
    more = ["required"] if field.required else []
    more += [f"default {field.default if ' ' in field.default else f'`{field.default}`'}"] if field.default else []
    example = f" Example: `{field.name}: {field.example}`." if field.example else ""
    return f"- `{field.name}`{' (' + ', '.join(more) + ')' if more else ''}: {field.summary}{example}"


def expressions() -> str:
    blocks = [EXPRESSIONS]
    blocks += [scope_page(name).replace("\n## ", "\n#### ").replace("# ", "### ", 1) for name in SCOPES]
    for heading, table in (("Filters", FILTERS), ("Tests", TESTS), ("Functions", FUNCTIONS)):
        blocks += [f"## {heading}", "\n".join(callees(table))]
    blocks += ["## Methods", "A method exists only where it is called: `x.items` is the key, `x.items()` the method."]
    for kind, methods in METHODS.items():
        blocks += [f"### Of a {kind}", "\n".join(callees(methods))]
    return text(blocks)


def callees(table: Mapping[str, Callee]) -> Iterator[str]:
    return (f"- `{callee.signature}`: {callee.summary}" for callee in table.values())


def graph_json() -> str:
    parts = {"The graph": "graph", "A node": "node", "An edge": "edge"}
    return text([GRAPH, *(f"## {heading}\n\n{meanings(SHAPE[part])}" for heading, part in parts.items())])


def events() -> str:
    rows = [
        f"| `{kind.name}` | {kind.display} | {kind.summary} | {', '.join(f'`{older}`' for older in kind.older)} |"
        for kind in EVENT_TYPES.values()
    ]
    keys = "\n".join(f"- `{name}`" for name in Event.__struct_fields__)
    table = "\n".join(["| name | display name | what happened | older names |", "|---|---|---|---|", *rows])
    return text([EVENTS, table, ENVELOPE, keys])


def settings() -> str:
    rows = [
        f"| `{name}` | {f'`{default}`' if default else ''} | {cell(meaning)} |"
        for name, (default, meaning) in VARIABLES.items()
    ]
    own = "\n".join(["| variable | default | what it is for |", "|---|---|---|", *rows])
    layered = ["| variable | in a playbook | default | what it is for |", "|---|---|---|---|"]
    for name, knob in knobs().items():
        default = f"`{knob.field.default}`" if knob.field.default else ""
        layered.append(f"| `{name}` | `{'.'.join(knob.path)}` | {default} | {cell(knob.about)} |")
    return text([SETTINGS, own, LAYERED_SETTINGS, "\n".join(layered)])


def exit_codes() -> str:
    meanings = {code: f"`{status}`: {CODE_WORDS[status]}" for status, code in EXIT_CODES.items()}
    meanings[InvalidInput.exit_code] = "What was given cannot be used; nothing was run or changed."
    meanings[WAITING] = "It has not ended: only somebody else can move it, or `--wait` ran out."
    rows = [f"| {code} | {meaning} |" for code, meaning in sorted(meanings.items())]
    return text([CODES, "\n".join(["| code | meaning |", "|---|---|", *rows])])


def cli() -> str:
    """Write the page of the commands from what the command line itself knows of them."""
    group = typer.main.get_group(build(COMMANDS))
    blocks = [
        "# Command line",
        "\n".join(f"- [noetl {name}](#noetl-{name}): {summary}" for name, (_, summary) in COMMANDS.items()),
        "`noetl --version` shows the version; `noetl COMMAND --help` prints what this page says of a command.",
    ]
    for name, command in group.commands.items():
        arguments = [found for found in command.params if isinstance(found, TyperArgument)]
        options = [found for found in command.params if isinstance(found, TyperOption)]
        usage = ["noetl", name, *(["[OPTIONS]"] if options else []), *map(metavar, arguments)]
        blocks += [f"## noetl {name}", f"```sh\n{' '.join(usage)}\n```", command.help or ""]
        blocks.append("\n".join([*map(parameter, arguments), *map(parameter, options)]))
        documented = " ".join((import_module(COMMANDS[name][0]).__doc__ or "").split())
        codes = re.search(r"Exit code 0:.*?\.(?= |$)", documented)
        blocks += [codes[0]] if codes else []
    return text(blocks)


def metavar(argument: TyperArgument) -> str:
    name = argument.metavar or argument.human_readable_name
    return name if argument.required else f"[{name}]"


def parameter(found: TyperArgument | TyperOption) -> str:
    names = (metavar(found),) if isinstance(found, TyperArgument) else (*found.opts, *found.secondary_opts)
    said = [found.help or ""]
    choices: Sequence[str] = getattr(found.type, "choices", ())
    if choices:
        said.append(f"One of {listed((f'`{choice}`' for choice in choices), 'or')}.")
    if found.default not in (None, False, ""):
        said.append(f"Default: `{getattr(found.default, 'value', found.default)}`.")
    return f"- {', '.join(f'`{name}`' for name in names)}: {' '.join(said)}"


def main() -> None:
    """Write the pages, and delete those that are no longer there."""
    wanted = pages()
    for path, written in wanted.items():
        file = FOLDER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text(encoding="utf-8") != written:
            file.write_text(written, encoding="utf-8")
    for file in FOLDER.rglob("*.md"):
        if file.relative_to(FOLDER).as_posix() not in wanted:
            file.unlink()
    print(f"{len(wanted)} pages in {FOLDER}")


if __name__ == "__main__":
    main()
