"""NOE506 reports an unquoted value in a shell command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetl.dsl.analysis.templates import TemplateSite
from noetl.dsl.checking.context import CheckContext
from noetl.dsl.checking.rule import Finding, Rule, example
from noetl.expr import Read, dotted

GOOD = example("""\
workload: { folder: /srv/in }
workflow:
  - step: count
    tool:
      kind: shell
      command: ls {{ workload.folder | quote }} | wc -l
""")
# Filters whose result the shell cannot interpret as code: a quoted word, a number, or letters and digits.
_HARMLESS = frozenset(
    {"quote", "int", "float", "abs", "round", "length", "count", "bool", "hash", "md5", "sha1", "sha256"}
)
_GENERATED = frozenset({"execution_id", "job", "_attempt", "_task", "_idempotency_key", "loop_index", "_index"})
# Variables that change how the shell and its programs behave.
_RESERVED = frozenset(
    {"CDPATH", "ENV", "HOME", "HOSTNAME", "IFS", "LANG", "LOGNAME", "MAIL", "OLDPWD", "PATH", "PPID", "PWD", "SHELL"}
    | {"TERM", "TMPDIR", "TZ", "UID", "USER"}
)
_NOT_A_NAME = re.compile(r"\W")
_COUNTERS = frozenset({"index", "total", "first", "last", "_index", "_total", "_first", "_last"})


def check(subject: CheckContext) -> Iterator[Finding]:
    commands = {id(code.node) for code in subject.code if code.language == "shell"}
    if not commands:
        return
    for site in subject.sites:
        if site.template is not None and id(site.node) in commands:
            reads = [read for read in site.template.spliced(_HARMLESS) if not _is_generated(read)]
            yield from (_report(subject, site, read) for read in reads)


def _is_generated(read: Read) -> bool:
    """Return whether the engine generates the value, so that no input can choose it."""
    root = read.path[0]
    return root in _GENERATED or (root == "iter" and len(read.path) > 1 and read.path[1] in _COUNTERS)


def _variable(word: str) -> str:
    """Return the name of an environment variable that is free to use."""
    name = _NOT_A_NAME.sub("_", word).upper()
    return f"INPUT_{name}" if name in _RESERVED or name[:1].isdigit() else name


def _report(subject: CheckContext, site: TemplateSite, read: Read) -> Finding:
    name = dotted(read.path)
    start = subject.locate(site, read.offset)
    word = next(part for part in reversed(read.path) if isinstance(part, str))
    variable = _variable(word)
    return Finding(
        start,
        subject.locate(site, read.offsets[-1] + len(str(read.path[-1]))),
        f"`{name}` is inserted into a shell command unquoted, and the shell interprets it as code.",
        "Write `{{ … | quote }}` without quotes around it, or pass the value through "
        f'`env: {{ {variable}: "{{{{ {name} }}}}" }}` and write `"${variable}"` in the command.',
    )


RULE = Rule(
    code="NOE506",
    name="shell-splice",
    severity="warning",
    summary="A template inserts an unquoted value into a shell command.",
    why=(
        "The shell cannot tell the value from the command. A value such as `x; rm -rf ~` runs as a second command, and even a "
        "harmless space or quote breaks the first one."
    ),
    fix=(
        'Pass the value through `env` and write `"$NAME"`, or quote it with `{{ workload.folder | quote }}`, or write the '
        "command as a list of a program and its arguments, which no shell interprets. For numbers, use `| int`."
    ),
    bad=GOOD.replace(" | quote", ""),
    good=GOOD,
    check=check,
)
