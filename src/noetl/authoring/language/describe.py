"""Markdown for hovers. Tested in tests/unit/authoring/features/test_hover.py."""

from __future__ import annotations

from collections.abc import Iterable

from noetl.dsl.analysis.net import Net
from noetl.dsl.checking.rule import Rule
from noetl.dsl.grammar.kinds import Kind
from noetl.dsl.grammar.titles import title
from noetl.dsl.grammar.types import Field, Level
from noetl.dsl.grammar.wording import takes
from noetl.dsl.tree.playbook import Arc, Step, Task
from noetl.expr import Callee

_LONGEST = 80
_WHERE = {"start": "when the execution starts", "server": "on the server", "worker": "on the worker"}


def field_text(field: Field, level: Level | None) -> str:
    """Describe a field: purpose, type, default, and where its template is rendered."""
    about = [f"**{field.name}**" + (f" of {title(level)}" if level else "")]
    facts = [f"Takes {takes(field.type)}."]
    if field.required:
        facts.append("Required.")
    if field.default:
        facts.append(f"Default: {field.default}.")
    if field.aliases:
        facts.append(f"Also written {_code_list(field.aliases)}.")
    if field.rendered:
        facts.append(f"May be a template, rendered {_WHERE[field.rendered]}.")
    about += [field.summary, " ".join(facts)]
    if field.example:
        about.append(f"Example: `{field.name}: {field.example}`")
    return "\n\n".join(about)


def kind_text(kind: Kind) -> str:
    """Describe a tool kind: purpose, required fields and result."""
    needed = [field.name for field in kind.input.fields if field.required]
    needed += [" or ".join(group) for group in kind.one_of]
    parts = [f"**{kind.name}** · tool kind", kind.summary, kind.description]
    if needed:
        parts.append("Needs: " + ", ".join(f"`{name}`" for name in needed))
    if kind.result:
        parts.append("Result:\n\n" + "\n".join(f"- `{name}`: {meaning}" for name, meaning in kind.result.items()))
    if kind.examples:
        parts.append(f"```yaml\n{kind.examples[0].yaml.rstrip()}\n```")
    return "\n\n".join(filter(None, parts))


def rule_text(rule: Rule) -> str:
    return f"**{rule.code}** {rule.name}\n\n{rule.summary}\n\n{rule.why}\n\n{rule.fix}"


def callee_text(callee: Callee) -> str:
    return f"`{callee.signature}` · {callee.kind}\n\n{callee.summary}"


def step_text(step: Step, net: Net) -> str:
    """Describe a step: what it runs, its incoming and outgoing arcs."""
    parts = [f"**{step.name}** · step", step.desc, _makeup(step)]
    number = net.index.get(step.name)
    if number is not None:
        marks = [word for word, is_it in (("entry", net.entry == number), ("final step", net.final == number)) if is_it]
        if marks:
            parts.append("This is the " + " and the ".join(marks) + ".")
        into = sorted({net.steps[edge.source].name for edge in net.into[number]})
        parts.append(f"From: {_code_list(into)}" if into else "No arc leads here.")
    parts.append("\n".join(["To:\n", *map(_arc, step.arcs)]) if step.arcs else "No arc leads on.")
    return "\n\n".join(filter(None, parts))


def _makeup(step: Step) -> str:
    kinds = " → ".join(f"{task.label} ({task.kind or 'no kind'})" for task in step.tasks)
    parts = [f"Runs {kinds}." if kinds else "Routes only."]
    if step.loop:
        parts.append(f"Once per `{step.loop.iterator}`, {step.loop.mode}.")
    if step.admit is not None:
        parts.append("Has a gate.")
    if step.join != "all":
        parts.append(f"Join: {step.join}.")
    if step.compensate:
        parts.append(f"Undone by `{step.compensate}`.")
    return " ".join(parts)


def _arc(arc: Arc) -> str:
    condition = f" when `{short(str(arc.when.data))}`" if arc.when is not None else ""
    return f"- `{arc.step}`{condition}"


def task_text(task: Task, kind: Kind | None) -> str:
    head = f"**{task.label}** · task of kind `{task.kind}`"
    return "\n\n".join(filter(None, (head, task.desc, kind.summary if kind else "")))


def short(text: str) -> str:
    """Shorten a text to one line for a code span."""
    line = " ".join(text.split()).replace("`", "'")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _code_list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
