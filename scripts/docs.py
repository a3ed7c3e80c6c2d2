"""Generate the reference pages in docs/reference/ from the code.

`pages()` returns every page and writes no file, so a test can compare the committed pages with it. Tested in
tests/docs/test_reference.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from logging import getLevelName
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import flame, report
from bench.memory import Memory
from bench.results import Results
from bench.screen import Measured
from noetl.cli.app import COMMANDS, build
from noetl.cli.runtime.runner import EXIT_CODES, WAITING
from noetl.configuration import knobs
from noetl.dsl.analysis.scopes import SCOPES
from noetl.dsl.dialects.lowering.lowerings import LOWERINGS, Dialect
from noetl.dsl.draw.render.graph_json import SHAPE
from noetl.dsl.explain.field_paths import levels_of, places
from noetl.dsl.explain.pages import kind_page, level_page, meanings, rule_page, scope_page, text
from noetl.dsl.explain.topics import METHODS
from noetl.dsl.explain.wording import listed
from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.kinds import Kind
from noetl.dsl.grammar.types import Field
from noetl.dsl.rules import RULES
from noetl.expr import FILTERS, FUNCTIONS, TESTS, Callee
from noetl.model.errors import InvalidInput
from noetl.model.events import EVENT_TYPES, Event
from noetl.observe.logs.table import COMMON, LOG_EVENTS
from noetl.observe.series import ALL, SERIES
from noetl.observe.traces.table import ALL as SPANS
from noetl.server.auth.credential_types import page
from noetl.settings import VARIABLES
from noetl.testing.cases.files.levels import LEVELS as TEST_LEVELS
from noetl.tools import MODULES
from noetl.wiring.embedded import language_kinds

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

These pages are generated from the code, and a test keeps them in step. `noetl explain` prints the same texts.

- [Language](language.md): every map of a playbook with its fields
- [Tool kinds](kinds/README.md): inputs, results and an example of each kind of task
- [Expressions](expressions.md): filters, tests, functions, methods and scopes of templates
- [Diagnostics](diagnostics/README.md): every code of the checker, why it is reported and how to fix it
- [Command line](cli.md): every command with its options
- [Exit codes](exit-codes.md): exit codes of the commands
- [Events](events.md): every event in an execution's log
- [Credentials](credentials.md): the fields of each type of stored credential
- [Metrics](metrics.md): the series of servers and workers
- [Spans](spans.md): the spans of a trace, and their attributes
- [Log events](log-events.md): the lines of servers and workers, and their fields
- [Settings](settings.md): environment variables, their defaults and meanings
- [Tests](tests.md): every map of a test file, for `noetl test`
- [Older dialects](dialects/README.md): every form of earlier versions of the language, beside the form of today
- [Graph as JSON](graph-json.md): the output of `noetl graph --format json`
- [Benchmarks](benchmarks.md): the latest run on one machine, compared with other systems and the disk
"""
DIAGNOSTICS = """\
# Diagnostics

An **error** means that the playbook cannot run as intended; a **warning**, that it probably does not do what it says; a **hint**
is worth knowing.
"""
DIALECTS = """\
# Older dialects

A playbook of an earlier version of the language runs unchanged. When it is read, each older form becomes the form of today with
the same meaning; checks, drawings and the engine see only that. Positions of diagnostics are those of your file. `noetl validate`
and `noetl run` give one notice per file, and [`noetl upgrade`](../cli.md#noetl-upgrade) rewrites the file
([how to](../../how-to/upgrade-older-playbooks.md)).

- [The first dialect](v1.md): `steps` in order, tasks by `type`, conditions by `when` and `pass`
- [The second dialect](v2.md): `case`, `vars`, `sink`, `retry`, `result`, `loop.collection`

A file may mix dialects. Older names of events, such as `step.exit` and `action_error`, are equal to today's names in conditions:
see [events](../events.md).

## What is refused

Where a form has no equivalent, or lacks what it needs, [NOE803](../diagnostics/NOE803.md) says so. NoETL does not guess.

| form | why |
|---|---|
| a step with `command` and no `type`, and no field that only one kind has | Nothing says what runs it. SQL with `auth` is `postgres`, SQL with `database` is `duckdb`, `env` and `cwd` belong to `shell`. |
| `next`, `retry` or `call` of `case` on `step.enter` | A step is routed when it ends. Give the step before one arc more. |
| a rule of `case` on the start of a loop, an attempt, or the end of the playbook | Nothing is routed or written at that moment; the message says where to write it. |
| `fail` or `skip` in the `then` of `case` | Control of a task is a rule of its `spec.policy`. |
| `collect` without `call` in the `then` of `case` | Nothing asks for a page to collect. |
| `next_call`, or `call` of `case`, of a step with several tasks | It does not say which of them asks for the next page. Write `retry` on the task. |
| `retry` of a step with several tasks whose condition reads both `error` and `response` | An error is one of any task, a result that of the last one. Write two rules. |
| two rules of `retry` with `next_call` | They contradict each other about the next page. |
| an iterator inside an iterator with the same `element` | The inner element would hide the outer one. |
| `sink` on a task of the workbook that another task of the workbook calls | A called task has no pipeline. Write the sink on the steps that call. |
| a sink without a tool | It would write nothing. |
| a key that a form does not have | It would be lost: NoETL leaves nothing out that you wrote. |

Elements of an inner iterator are processed one after the other, also with `mode: async`.
"""
DIALECT_HEADS: dict[Dialect, str] = {
    "v1": """\
# The first dialect

Its playbooks have a list of `steps`, which ran in file order, and a step was its tool. Each section is one rule of
`noetl upgrade`: what was written, and what it is read as.
""",
    "v2": """\
# The second dialect

Its playbooks have a graph of steps. One `case` mixed routing, writes and control, and `retry` hid loops. Each section is one
rule of `noetl upgrade`: what was written, and what it is read as.
""",
}
KINDS = """\
# Tool kinds

A task names its kind: `kind: http`. It has the fields of [task](../language.md#task), which all kinds share, and the fields of
its kind. Packages can add kinds.
"""
LANGUAGE = """\
# Language

Every map of a playbook with its fields, from the root down. Fields are optional unless marked *required*. Other keys are errors
unless a map allows them.
"""
EXPRESSIONS = """\
# Expressions

The language between `{{` and `}}`: Jinja2 expressions over plain data. See [expressions](../explanation/expressions.md) for the
reasons.

## Scopes

Names that a template can read.
"""
TEST_FILES = """\
# Tests

Every map of a test file, from the root down. A test file is `NAME.test.yaml` beside the playbook `NAME.yaml`; see
[test a playbook](../how-to/test-a-playbook.md). `noetl schema tests` prints the same as a JSON Schema for editors.

Times are seconds, or texts such as `250ms`, `5m`, `1h30m` and `30d`. A task is `step`, `step.task`, or either with its playbook:
`payment:charge`. An expected map compares the keys that it has, an expected list compares the whole list, and an expected
template is a condition. The condition sees the actual value as `value`, and `status`, `result`, `ctx`, `error`, `workload`,
`world` and `route`. An invariant of a saga sees the same names, and the lists of steps `completed`, `undone`, `failed` and
`stuck` (the compensation was given up).
"""
GRAPH = """\
# Graph as JSON

`noetl graph FILE --format json` prints one object for programs that draw or analyse the graph. Within a `version`, fields are
added, never renamed or removed.
"""
EVENTS = """\
# Events

Every event in the log of an execution. `noetl events ID` prints the log, `--type NAME` filters it. Conditions read the name as
`event.name`, where older names mean the same.
"""
ENVELOPE = """\
## The envelope

`noetl events ID --json` prints one object per line with these keys and `step`, the step of the event. Keys are added, never
renamed or removed.
"""
SETTINGS = """\
# Settings

A process reads its settings from the environment and from a configuration file: `$NOETL_CONFIG`, else `noetl.yaml` in the folder
of the store. Command options override variables, and variables override the file. The file has the same names in lower case
without `NOETL_`, also as nested maps: `NOETL_RETRIES_PLUGIN_BASE_MS` is `retries: {plugin: {base_ms: 50}}`. Credentials are read
from the environment only.

`noetl config show --origin` prints every setting with its value and where it comes from, without secrets. `noetl config check`
reports everything that is wrong with file and environment at once, with line and column; `noetl serve`, `up` and `worker` do so
before they start. A variable that begins with `NOETL_` and is no setting is a warning, with the name that was probably meant.

```yaml
capacity: 32
retries:
  plugin: {max_attempts: 4, base_ms: 100}
timeouts: {tool_default_ms: 30000}
policies: {on_step_fail: halt}
```
"""
WHOLE_FILE = """\
## A file for operation

[deploy/noetl.yaml](../../deploy/noetl.yaml) sets what concerns observability and resilience: `NOETL_CONFIG=deploy/noetl.yaml noetl up`
starts with it as it is. These of its values are not the defaults:

| setting | in the file | default | why |
|---|---|---|---|
| `timeouts.tool_default_ms`, `timeouts.sink_default_ms`, `timeouts.loop_item_ms` | 30 seconds | none | A task or an item that takes longer than half a minute is nothing unusual, and a time-out ends it. |
| `dlq.topic` | `noetl-dlq` | empty | The receiver of the outbox would get messages that it does not expect. |
| `tracing.endpoint` | `http://jaeger:4318` | empty | No address suits every machine. |
| `metrics.port` | 9090 | 0 | Several workers may share a machine. A server has metrics at `/metrics` of its own port. |
| `logging.level` | `INFO` | `error`; of `serve`, `up` and `worker` `info`, and `warning` for log events | A command that runs a playbook stays quiet, and dead letters are seen. |
| `logging.format` | `json` | `console` | People read the log of a server that they start; collectors are set up. |
| `logging.redact_keys` | six names | empty | The usual names of secrets are always masked; `key` masks much else. |
| `policies.on_when_error` | `treat_as_false` | false, and the step fails if no arc is taken | A branch must not end silently because of a mistake in a condition. |
"""
METRICS = """\
# Metrics

A server exposes its series, and those of the workers in its process, at `/metrics` in the text format of Prometheus. The role
`viewer` may read them: give the scraper a token of `noetl token create`. With `NOETL_METRICS_PORT`, servers and workers also
expose them on a port of their own, without a token, on loopback unless `NOETL_METRICS_HOST` names another address. A worker has no
other place for them.

Labels hold what people write, such as paths of playbooks, names of steps, kinds and pools, and ids of workers that have not left;
never ids of executions. A pool without a name is `default`. `noetl_queue_depth`, `noetl_queue_age_seconds`,
`noetl_task_queue_inflight`, `dlq_entries`, `noetl_outbox_messages` and `noetl_worker_heartbeat_timestamp` are read from the store:
every server of a database shows the same numbers. All others count what one process did.
"""
SPAN_KINDS = """\
# Spans

The trace of an execution has these spans. [Trace executions](../how-to/trace-executions.md) explains how to send and see them.
Attributes name things, and show what was sent as a signature: `GET https://api.example.com/users/{id}`, `{id: int, name: str}`.
Every span has `execution_id`; attributes that do not apply are left out. `noetl trace` marks what has not ended with `open`. If an
execution has more than 10,000 spans, `server.execution` counts the rest as `spans_dropped`.
"""
LOG_LINES = """\
# Log events

Servers and workers log to stderr. `NOETL_LOGGING_LEVEL=info` shows every step, task and arc; by default only what went wrong is
shown, such as `task_dlq`. `NOETL_LOGGING_FORMAT=json` writes one object per line. `noetl run` logs errors only, unless you set a
level. Secrets are masked as [everywhere](../explanation/secrets.md), and sinks show a checksum instead of data.

```json
{"ts": "2026-11-06T12:00:00.123Z", "level": "INFO", "logger": "noetl.server.events", "msg": "step_done", "event": "step_done",
 "ok": true, "done": true, "duration_ms": 1234.0, "execution_id": "484377543601029219", "workflow_ref": "playbooks/users",
 "step_id": "fetch", "call_id": "fetch#1"}
```

Lines of a server are derived from the events that it has committed, after the commit: what is logged has happened.
"""
LAYERED_SETTINGS = """\
## For every execution

Defaults for playbooks. A task gets the settings of the configuration, `executor.spec`, the step, its loop and the task; later ones
override earlier ones, maps are merged, lists are replaced. A remote worker uses its server's configuration, not its own.
"""
CODES = """\
# Exit codes

Commands that drive an execution (`run`, `resume`, `signal`, `fork`, `cancel`, `unpause`) exit with the code of its status.
Commands that only read exit with 0. Commands that check have codes of their own, listed in [their section](cli.md).
"""
CODE_WORDS = {
    "completed": "All steps finished.",
    "failed": "A step failed and no rule handled it, the execution timed out, or the store was unavailable.",
    "cancelled": "It was cancelled, for example with Ctrl-C.",
    "partial": "It finished, but items of a loop with `failure.mode: best_effort` failed.",
}


CREDENTIALS = """\
# Credentials

`noetl credential put NAME --kind TYPE --data @FILE` stores a credential; a field that its type does not have, a field that \
is missing, or a value of the wrong type, is an error. Where nothing else is said, a value is a text; a number is read as its text. A playbook names the credential with `auth: NAME`. `noetl credential test NAME` connects with it, where its type has something to connect to. The environment variable \
`NOETL_CREDENTIAL_NAME` holds the same fields as a JSON object. [Secrets](../explanation/secrets.md) explains what is masked.
"""


def pages() -> dict[str, str]:
    """Return every reference page by its path below the folder."""
    kinds = {name: language_kinds()[name] for name in MODULES}
    found = {
        "README.md": INDEX,
        "benchmarks.md": report.page(
            Results.newest(), flame.kept(), Memory.kept(), Measured.kept(), Results.elsewhere()
        ),
        "cli.md": cli(),
        "credentials.md": text([CREDENTIALS, page()]),
        "events.md": events(),
        "exit-codes.md": exit_codes(),
        "expressions.md": expressions(),
        "graph-json.md": graph_json(),
        "language.md": language(),
        "log-events.md": log_events(),
        "metrics.md": metrics(),
        "settings.md": settings(),
        "spans.md": span_kinds(),
        "tests.md": tests(),
        "diagnostics/README.md": diagnostics(),
        "dialects/README.md": DIALECTS,
        "dialects/v1.md": dialect("v1"),
        "dialects/v2.md": dialect("v2"),
        "kinds/README.md": kinds_index(kinds),
    }
    found |= {f"diagnostics/{rule.code}.md": rule_page(rule) for rule in RULES}
    found |= {f"kinds/{kind.name}.md": kind_page(kind) for kind in kinds.values()}
    return {path: f"{NOTE}\n{written}" for path, written in sorted(found.items())}


def dialect(name: Dialect) -> str:
    """Return the page of an older dialect: each form beside the one of today."""
    blocks = [DIALECT_HEADS[name]]
    for lowering in LOWERINGS.values():
        if lowering.dialect == name:
            blocks += [f"## {lowering.name}", lowering.sentence, f"```yaml\n{lowering.before}\n```", "is read as"]
            blocks.append(f"```yaml\n{lowering.after}\n```")
    return text(blocks)


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
    """Escape text for a table cell."""
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
            blocks.append(f"Used at {listed(f'`{path}`' for path in dict.fromkeys(paths))}.")
    return text(blocks)


def tests() -> str:
    blocks = [TEST_FILES]
    for level in TEST_LEVELS:
        parts = [f"## {level.name.removeprefix('test_')}", level.summary]
        blocks += [*parts, "\n".join(map(test_field, level.fields))]
    return text(blocks)


def test_field(field: Field) -> str:
    """Return the line of one key of a test file."""
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
    own = "\n".join(["| variable | default | meaning |", "|---|---|---|", *rows])
    layered = ["| variable | in a playbook | default | meaning |", "|---|---|---|---|"]
    for name, knob in knobs().items():
        default = f"`{knob.field.default}`" if knob.field.default else ""
        layered.append(f"| `{name}` | `{'.'.join(knob.path)}` | {default} | {cell(knob.about)} |")
    return text([SETTINGS, WHOLE_FILE, "## Of a process", own, LAYERED_SETTINGS, "\n".join(layered)])


def metrics() -> str:
    blocks = [METRICS]
    for source in ("server", "worker"):
        rows = [
            f"| `{one.name}` | {one.type} | {', '.join(f'`{label}`' for label in one.labels)} | {cell(one.about)} |"
            for one in ALL
            if one.source == source
        ]
        blocks += [f"## Of a {source}", "\n".join(["| series | type | labels | meaning |", "|---|---|---|---|", *rows])]
    buckets = [f"- `{one.name}`: {seconds(one.buckets)}" for one in ALL if one.buckets]
    kinds: dict[tuple[float, ...], list[str]] = {}
    for kind, found in SERIES["noetl_worker_task_duration_seconds"].buckets_of.items():
        kinds.setdefault(found, []).append(f"`{kind}`")
    named = [f"of {listed(names)} {seconds(found)}" for found, names in kinds.items()]
    return text([*blocks, "## Buckets", "In seconds.", "\n".join(buckets) + "; " + "; ".join(named)])


def span_kinds() -> str:
    rows = [
        f"| `{one.name}` | {one.parent} | {', '.join(f'`{name}`' for name in one.attributes)} | {cell(one.about)} |"
        for one in SPANS
    ]
    return text([SPAN_KINDS, "\n".join(["| span | parent | attributes | meaning |", "|---|---|---|---|", *rows])])


def log_events() -> str:
    rows = [f"| `{name}` | {cell(about)} |" for name, about in COMMON.items()]
    blocks = [LOG_LINES, "## Fields of every line", "Fields that do not apply are left out."]
    blocks.append("\n".join(["| field | meaning |", "|---|---|", *rows]))
    for source in ("server", "worker"):
        rows = [
            f"| `{one.name}` | {getLevelName(one.level)} | {', '.join(f'`{field}`' for field in one.fields)} | {cell(one.about)} |"
            for one in LOG_EVENTS.values()
            if one.source == source
        ]
        head = ["| event | level | further fields | meaning |", "|---|---|---|---|"]
        blocks += [f"## Of a {source}", "\n".join([*head, *rows])]
    return text(blocks)


def seconds(bounds: Sequence[float]) -> str:
    return ", ".join(f"{bound:g}" for bound in bounds)


def exit_codes() -> str:
    meanings = {code: f"`{status}`: {CODE_WORDS[status]}" for status, code in EXIT_CODES.items()}
    meanings[InvalidInput.exit_code] = "Invalid input: nothing was run or changed."
    meanings[WAITING] = "It has not ended: it waits for a signal, or `--wait` timed out."
    rows = [f"| {code} | {meaning} |" for code, meaning in sorted(meanings.items())]
    return text([CODES, "\n".join(["| code | meaning |", "|---|---|", *rows])])


def cli() -> str:
    """Return the page of the commands, from the command line's own tables."""
    group = typer.main.get_group(build(COMMANDS))
    blocks = [
        "# Command line",
        "\n".join(f"- [noetl {name}](#noetl-{name}): {summary}" for name, (_, summary) in COMMANDS.items()),
        "`noetl --version` prints the version; `noetl COMMAND --help` prints the section of a command.",
    ]
    for name in COMMANDS:
        command = group.commands[name]
        if isinstance(command, TyperGroup):
            blocks += [f"## noetl {name}", command.help or ""]
            for action, inner in command.commands.items():
                blocks += section(f"noetl {name} {action}", inner, "###")
        else:
            blocks += section(f"noetl {name}", command, "##")
        documented = " ".join((import_module(COMMANDS[name][0]).__doc__ or "").split())
        codes = re.search(r"Exit code \d:.*?\.(?= |$)", documented)
        blocks += [codes[0]] if codes else []
    return text(blocks)


def section(name: str, command: Any, heading: str) -> list[str]:
    """Return the blocks of one command: usage, help, arguments and options."""
    arguments = [found for found in command.params if isinstance(found, TyperArgument)]
    options = [found for found in command.params if isinstance(found, TyperOption)]
    usage = [name, *(["[OPTIONS]"] if options else []), *map(metavar, arguments)]
    blocks = [f"{heading} {name}", f"```sh\n{' '.join(usage)}\n```", command.help or ""]
    listed_parameters = "\n".join([*map(parameter, arguments), *map(parameter, options)])
    return [*blocks, listed_parameters] if listed_parameters else blocks


def metavar(argument: TyperArgument) -> str:
    name = argument.metavar or argument.human_readable_name
    return name if argument.required or name.startswith("[") else f"[{name}]"


def parameter(found: TyperArgument | TyperOption) -> str:
    names = (metavar(found),) if isinstance(found, TyperArgument) else (*found.opts, *found.secondary_opts)
    parts = [found.help or ""]
    choices: Sequence[str] = getattr(found.type, "choices", ())
    if choices:
        parts.append(f"One of {listed((f'`{choice}`' for choice in choices), 'or')}.")
    if found.default not in (None, False, ""):
        parts.append(f"Default: `{getattr(found.default, 'value', found.default)}`.")
    return f"- {', '.join(f'`{name}`' for name in names)}: {' '.join(parts)}"


def main() -> None:
    """Write the pages and delete obsolete ones."""
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
