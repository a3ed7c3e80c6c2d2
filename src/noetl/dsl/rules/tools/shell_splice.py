"""NOE506 reports a value from outside that is pasted into a shell command."""

from __future__ import annotations

import re
from collections.abc import Iterator

from noetl.dsl.rule import Found, Rule
from noetl.dsl.sites import Site
from noetl.dsl.subject import Subject
from noetl.expr import Read, dotted

GOOD = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: hello, path: examples/hello }
workload: { folder: /srv/in }
workflow:
  - step: count
    tool:
      kind: shell
      command: ls {{ workload.folder | quote }} | wc -l
"""
# Filters whose result the shell cannot take for code: one quoted word, a number, or letters and digits only.
_HARMLESS = frozenset(
    {"quote", "int", "float", "abs", "round", "length", "count", "bool", "hash", "md5", "sha1", "sha256"}
)
_OURS = frozenset({"execution_id", "job", "_attempt", "_task", "_idempotency_key", "loop_index", "_index"})
_NOT_A_NAME = re.compile(r"\W")
_COUNTERS = frozenset({"index", "total", "first", "last", "_index", "_total", "_first", "_last"})


def check(subject: Subject) -> Iterator[Found]:
    commands = {id(code.node) for code in subject.code if code.language == "shell"}
    if not commands:
        return
    for site in subject.sites:
        if site.template is not None and id(site.node) in commands:
            reads = [read for read in site.template.spliced(_HARMLESS) if not _is_ours(read)]
            yield from (_found(subject, site, read) for read in reads)


def _is_ours(read: Read) -> bool:
    """Tell whether the engine makes the value, so that nobody else can choose it."""
    root = read.path[0]
    return root in _OURS or (root == "iter" and len(read.path) > 1 and read.path[1] in _COUNTERS)


def _found(subject: Subject, site: Site, read: Read) -> Found:
    name = dotted(read.path)
    start = subject.locate(site, read.offset)
    word = next(part for part in reversed(read.path) if isinstance(part, str))
    variable = _NOT_A_NAME.sub("_", word).upper()
    return Found(
        start,
        subject.locate(site, read.offsets[-1] + len(str(read.path[-1]))),
        f"`{name}` is pasted into a shell command, and the shell reads it as code.",
        "Write it as `{{ … | quote }}`, without quotes around it; or pass it by "
        f'`env: {{ {variable}: "{{{{ {name} }}}}" }}` and write `"${variable}"` in the command.',
    )


RULE = Rule(
    code="NOE506",
    name="shell-splice",
    group="tools",
    severity="warning",
    summary="A template puts a value from outside into the text of a shell command.",
    why=(
        "The shell cannot tell the value from the command. A value such as `x; rm -rf ~` runs as a second command, and even an "
        "honest space or quote breaks the first one."
    ),
    fix=(
        'Pass the value through `env` and write `"$NAME"`; or quote it, `{{ workload.folder | quote }}`; or give the command '
        "as a list of a program and its arguments, which no shell reads. `| int` does for numbers."
    ),
    bad=GOOD.replace(" | quote", ""),
    good=GOOD,
    check=check,
)
