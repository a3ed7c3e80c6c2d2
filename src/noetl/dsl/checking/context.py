"""The document under check. Tested with the rules in tests/unit/dsl/rules."""

from __future__ import annotations

import re
from bisect import bisect_right
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
from noetl.dsl.diagnostic import Suggestions
from noetl.dsl.dialects import LegacyForm
from noetl.dsl.dialects.lowering import Lowered, lower
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar, Source
from noetl.dsl.reading.parse import Document
from noetl.dsl.reading.ranges import Offsets, Ranges
from noetl.dsl.reading.source_map import SourceMap
from noetl.dsl.tree.normalize import tree
from noetl.dsl.tree.playbook import Loop, Playbook, Task

_SPACE = re.compile(r"\s*")


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
        self.suggestions = Suggestions()
        self._located: tuple[Scalar, SourceMap] | None = None

    @property
    def source(self) -> Source:
        return self.document.source

    @property
    def written(self) -> MapNode | None:
        """The root as it is written."""
        return self.document.root if isinstance(self.document.root, MapNode) else None

    @cached_property
    def lowered(self) -> Lowered:
        return lower(self.document)

    @property
    def root(self) -> MapNode | None:
        """The root in canonical form."""
        return self.lowered.root if isinstance(self.lowered.root, MapNode) else None

    @cached_property
    def playbook(self) -> Playbook:
        return tree(self.root)

    @cached_property
    def shape(self) -> tuple[ShapeFinding, ...]:
        """What does not fit the grammar, without words that a comma split off a value."""
        split = {id(word) for value in self.split_values for word in value.words}
        return tuple(finding for finding in self.every_finding if id(finding.node) not in split)

    @cached_property
    def every_finding(self) -> tuple[ShapeFinding, ...]:
        """What does not fit the grammar."""
        return findings(self.root, self.kinds, self.suggestions)

    @cached_property
    def split_values(self) -> tuple[SplitValue, ...]:
        return split_values(self.written, self.source) if self.written else ()

    @cached_property
    def strange_keys(self) -> frozenset[int]:
        """The ids of keys that have no place where they are."""
        return frozenset(id(finding.node) for finding in self.every_finding if finding.kind in STRAY)

    @cached_property
    def legacy(self) -> tuple[LegacyForm, ...]:
        return tuple(finding.form for finding in self.shape if finding.form)

    def loop_means(self, loop: Loop, setting: str) -> bool:
        """Return whether a loop has a setting that is misspelled or misplaced."""
        spec = loop.at.get("spec") if isinstance(loop.at, MapNode) else None
        holders = {id(loop.at), id(spec)}
        wrong = {(holder, setting) for holder in holders}
        return not self.stand_ins.isdisjoint(wrong) or not self.wrong_keys.isdisjoint(wrong)

    @cached_property
    def wrong_keys(self) -> frozenset[tuple[int, str]]:
        """The keys of shape findings, as (id of the map, name)."""
        return frozenset((id(finding.owner), finding.name) for finding in self.shape)

    @cached_property
    def wrong_maps(self) -> frozenset[int]:
        """The ids of the maps with a wrong key."""
        return frozenset(owner for owner, _ in self.wrong_keys)

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
        starts, around = self._misread
        return starts.any_in(node.start, node.end) or around.cover(node.start)

    @cached_property
    def _misread(self) -> tuple[Offsets, Ranges]:
        """The beginnings of read problems, and their ranges with the space after them."""
        problems = [problem for problem in self.document.problems if problem.kind != "legacy-boolean"]
        ranges = [(one.start, _after_space(self.source.text, one.end) + 1) for one in problems]
        return Offsets(problem.start for problem in problems), Ranges(ranges)

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
        every, strayed = sites(self.playbook, self.kinds), Ranges(stray_ranges(self.shape))
        return tuple(site for site in every if not strayed.cover(site.node.start))

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
        if self._located is None or self._located[0] is not site.node:
            self._located = (site.node, SourceMap(self.source, site.node))
        return self._located[1].locate(offset)

    @cached_property
    def _parts(self) -> dict[int, _Parts]:
        return {}

    def path(self, start: int) -> str:
        """Return the path of the innermost node that covers an offset."""
        path, node = "", self.document.root
        while isinstance(node, MapNode | ListNode):
            parts = self._parts.get(id(node))
            if parts is None:
                parts = self._parts[id(node)] = _Parts(node)
            number = parts.covering(start)
            if number is None:
                break
            node, name = parts.nodes[number], parts.names[number]
            path = f"{path}.{name}" if parts.is_map and path else path + name
        return path


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


class _Parts:
    """The keys and values that are written inside of a node, by position.

    What an alias or a merge key repeats is written elsewhere.
    """

    def __init__(self, node: MapNode | ListNode) -> None:
        named: list[tuple[Node, str]] = (
            [(part, entry.key.text) for entry in node for part in (entry.value, entry.key)]
            if isinstance(node, MapNode)
            else [(item, f"[{number}]") for number, item in enumerate(node)]
        )
        own = [(part, name) for part, name in named if node.start <= part.start <= node.end]
        own.sort(key=lambda item: item[0].start)
        self.nodes = [part for part, _ in own]
        self.names = [name for _, name in own]
        self.is_map = isinstance(node, MapNode)
        self._starts = [part.start for part in self.nodes]

    def covering(self, offset: int) -> int | None:
        """Return the number of the part that covers an offset."""
        last = bisect_right(self._starts, offset)
        for number in range(max(0, last - 3), last):  # an empty value may begin where the next key does
            part = self.nodes[number]
            if part.start <= offset < max(part.end, part.start + 1):
                return number
        return None
