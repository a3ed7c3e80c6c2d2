"""The document under check. Tested with the rules in tests/unit/dsl/rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property

from noetl.dsl.analysis.embedded_code import Code, code
from noetl.dsl.analysis.flow import Flow
from noetl.dsl.analysis.net import Net, build
from noetl.dsl.analysis.references import Reference, references
from noetl.dsl.analysis.scopes import Names
from noetl.dsl.analysis.templates import TemplateSite, sites
from noetl.dsl.checking.shape import findings
from noetl.dsl.checking.shape_findings import STRAY, ShapeFinding, hides_routing, obscured, stand_ins, stray_ranges
from noetl.dsl.checking.split_values import SplitValue, split_values
from noetl.dsl.checking.uses import Unavailable
from noetl.dsl.dialects import LegacyForm
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Source
from noetl.dsl.reading.parse import Document, locate
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.playbook import Loop, Playbook, Task


class CheckContext:
    """A document under check; `catalog` holds the known playbook paths, if any.

    `unavailable` says what this installation cannot run; without it, everything can be run.
    """

    def __init__(
        self,
        document: Document,
        kinds: Kinds,
        catalog: Collection[str] | None = None,
        unavailable: Unavailable | None = None,
    ) -> None:
        self.unavailable = unavailable
        self.document = document
        self.kinds = kinds
        self.catalog = catalog

    @property
    def source(self) -> Source:
        return self.document.source

    @property
    def root(self) -> MapNode | None:
        return self.document.root if isinstance(self.document.root, MapNode) else None

    @cached_property
    def playbook(self) -> Playbook:
        return normalize(self.document)

    @cached_property
    def shape(self) -> tuple[ShapeFinding, ...]:
        """What does not fit the grammar, without words that a comma split off a value."""
        split = {id(word) for value in self.split_values for word in value.words}
        return tuple(finding for finding in self._every_finding if id(finding.node) not in split)

    @cached_property
    def _every_finding(self) -> tuple[ShapeFinding, ...]:
        return findings(self.root, self.kinds)

    @cached_property
    def split_values(self) -> tuple[SplitValue, ...]:
        return split_values(self.root, self.source) if self.root else ()

    @cached_property
    def strange_keys(self) -> frozenset[int]:
        """The ids of keys that have no place where they are."""
        return frozenset(id(finding.node) for finding in self._every_finding if finding.kind in STRAY)

    @cached_property
    def legacy(self) -> tuple[LegacyForm, ...]:
        return tuple(finding.form for finding in self.shape if finding.form)

    def loop_means(self, loop: Loop, setting: str) -> bool:
        """Return whether a loop has a setting that is misspelled or misplaced."""
        spec = loop.at.get("spec") if isinstance(loop.at, MapNode) else None
        holders = {id(loop.at), id(spec)}
        if not self.stand_ins.isdisjoint((holder, setting) for holder in holders):
            return True
        return any(finding.name == setting and id(finding.owner) in holders for finding in self.shape)

    @cached_property
    def stand_ins(self) -> frozenset[tuple[int, str]]:
        """The fields that misspelled, misplaced and older keys stand in for."""
        return stand_ins(self.shape)

    @property
    def is_read_whole(self) -> bool:
        """Whether nothing was dropped from the document: no duplicates, no errors."""
        return all(problem.kind == "legacy-boolean" for problem in self.document.problems)

    def is_misread(self, node: Node) -> bool:
        """Return whether a read problem is in a node, around it, or just before it."""
        text = self.source.text
        for problem in self.document.problems:
            if problem.kind == "legacy-boolean":
                continue
            if node.start <= problem.start < node.end or problem.start <= node.start < problem.end:
                return True
            if problem.end <= node.start and not text[problem.end : node.start].strip():
                return True
        return False

    @cached_property
    def net_is_whole(self) -> bool:
        """Whether the net is complete: no misshapen parts, older forms, wrong names."""
        named = [step.name for step in self.playbook.workflow]
        workflow = self.root.get("workflow") if self.root else None
        complete = isinstance(workflow, ListNode) and len(named) == len(workflow.items)
        return (
            complete
            and self.is_read_whole
            and all(named)
            and len(set(named)) == len(named)
            and not any(form.routes for form in self.legacy)
            and not any(map(hides_routing, self.shape))
            and self.names.steps.isdisjoint(self.obscured)
            and all(name in self.names.steps for name in self._targets())
        )

    def _targets(self) -> Iterator[str | None]:
        yield self.playbook.entry
        final = self.playbook.executor.setting("final_step")
        if final is not None:
            yield str(final)
        for step in self.playbook.workflow:
            yield from (arc.step for arc in step.arcs)
            if step.compensate is not None:
                yield step.compensate

    @cached_property
    def obscured(self) -> frozenset[str]:
        """Words in misshapen positions, which rules about names must treat as known."""
        return obscured(self.shape)

    @cached_property
    def missing_steps(self) -> frozenset[str]:
        """Arc targets without a step; they are reported at the arc and nowhere else."""
        steps = self.names.steps
        return frozenset(arc.step for step in self.playbook.workflow for arc in step.arcs if arc.step not in steps)

    @cached_property
    def sites(self) -> tuple[TemplateSite, ...]:
        """Every template with a known role; templates under misplaced keys have none."""
        every, strayed = sites(self.playbook, self.kinds), stray_ranges(self.shape)
        if not strayed:
            return every
        return tuple(site for site in every if not any(start <= site.node.start < end for start, end in strayed))

    @cached_property
    def names(self) -> Names:
        return Names.of(self.playbook)

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        return references(self.sites, self.names)

    @cached_property
    def workbook(self) -> dict[str, Task]:
        return {task.label: task for task in self.playbook.workbook}

    @cached_property
    def net(self) -> Net:
        return build(self.playbook)

    @cached_property
    def flow(self) -> Flow:
        return Flow(self.playbook, self.sites)

    @cached_property
    def code(self) -> tuple[Code, ...]:
        return code(self.playbook, self.kinds)

    def locate(self, site: TemplateSite, offset: int) -> int:
        """Return the offset in the source of an offset inside a template."""
        return locate(self.source, site.node, offset)

    @cached_property
    def _paths(self) -> dict[int, str]:
        paths: dict[int, str] = {}
        _walk_paths(self.document.root, "", paths)
        return paths

    def path(self, start: int) -> str:
        """Return the path of the innermost node that covers an offset."""
        best = ""
        node = self.document.root
        while node is not None:
            best = self._paths.get(id(node), best)
            node = _child_at(node, start)
        return best


def _walk_paths(node: Node | None, path: str, paths: dict[int, str]) -> None:
    if node is None or id(node) in paths:
        return
    paths[id(node)] = path
    if isinstance(node, MapNode):
        for entry in node:
            below = f"{path}.{entry.key.text}" if path else entry.key.text
            paths.setdefault(id(entry.key), below)
            _walk_paths(entry.value, below, paths)
    elif isinstance(node, ListNode):
        for number, item in enumerate(node):
            _walk_paths(item, f"{path}[{number}]", paths)


def _child_at(node: Node, offset: int) -> Node | None:
    if isinstance(node, MapNode):
        for entry in node:
            for part in (entry.value, entry.key):
                if part.start <= offset < max(part.end, part.start + 1):
                    return part
    elif isinstance(node, ListNode):
        for item in node:
            if item.start <= offset < max(item.end, item.start + 1):
                return item
    return None
