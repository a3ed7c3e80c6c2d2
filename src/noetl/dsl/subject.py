"""What rules look at: a document with everything that can be known of it, each part made once and only when asked for.

Holds no opinion. Tested with the rules and in tests/unit/dsl/rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property

from noetl.dsl.analyze import Flow
from noetl.dsl.code import Code, code
from noetl.dsl.dialects import LegacyForm
from noetl.dsl.kinds import Kinds
from noetl.dsl.net import Net, build
from noetl.dsl.nodes import ListNode, MapNode, Node, Source
from noetl.dsl.normalize import normalize
from noetl.dsl.obscured import hides_routing, obscured, stray_ranges
from noetl.dsl.parse import Document, locate
from noetl.dsl.playbook import Loop, Playbook, Task
from noetl.dsl.references import Reference, references
from noetl.dsl.scopes import Names
from noetl.dsl.shape import ShapeFinding, findings, stand_ins
from noetl.dsl.sites import Site, sites


class Subject:
    """A document under examination.

    `catalog` holds the paths of the playbooks that are known to exist; None where nobody looked.
    """

    def __init__(self, document: Document, kinds: Kinds, catalog: Collection[str] | None = None) -> None:
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
        return findings(self.root, self.kinds)

    @cached_property
    def legacy(self) -> tuple[LegacyForm, ...]:
        return tuple(finding.form for finding in self.shape if finding.form)

    def loop_means(self, loop: Loop, setting: str) -> bool:
        """Tell whether a loop has a setting after all, only misspelled, misplaced or misshapen: that is told already."""
        spec = loop.at.get("spec") if isinstance(loop.at, MapNode) else None
        holders = {id(loop.at), id(spec)}
        if not self._stand_ins.isdisjoint((holder, setting) for holder in holders):
            return True
        return any(one.name == setting and id(one.owner) in holders for one in self.shape)

    @cached_property
    def _stand_ins(self) -> frozenset[tuple[int, str]]:
        return stand_ins(self.shape)

    @property
    def is_read_whole(self) -> bool:
        """Tell whether the document holds all that the text says: doubled keys and broken values are left out of it."""
        return all(problem.kind == "legacy-boolean" for problem in self.document.problems)

    @cached_property
    def net_is_whole(self) -> bool:
        """Tell whether the arcs say all about routing: misshapen parts, older forms and wrong names hide some of it."""
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
        """Give every name by which a token comes to a step."""
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
        """Words in misshapen places: names that exist for the author."""
        return obscured(self.shape)

    @cached_property
    def missing_steps(self) -> frozenset[str]:
        """Names that arcs lead to and no step has: told where the arc is, and nowhere else."""
        steps = self.names.steps
        return frozenset(arc.step for step in self.playbook.workflow for arc in step.arcs if arc.step not in steps)

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """Every template whose role is known: under a key that stands at a wrong place, it is not."""
        found, strayed = sites(self.playbook, self.kinds), stray_ranges(self.shape)
        if not strayed:
            return found
        return tuple(site for site in found if not any(start <= site.node.start < end for start, end in strayed))

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

    def locate(self, site: Site, offset: int) -> int:
        """Give the place in the source of a place inside a template."""
        return locate(self.source, site.node, offset)

    @cached_property
    def _paths(self) -> dict[int, str]:
        found: dict[int, str] = {}
        _walk_paths(self.document.root, "", found)
        return found

    def path(self, start: int) -> str:
        """Give the path of the innermost node that begins at or before an offset and covers it."""
        best = ""
        node = self.document.root
        while node is not None:
            best = self._paths.get(id(node), best)
            node = _child_at(node, start)
        return best


def _walk_paths(node: Node | None, path: str, found: dict[int, str]) -> None:
    if node is None or id(node) in found:
        return
    found[id(node)] = path
    if isinstance(node, MapNode):
        for entry in node:
            below = f"{path}.{entry.key.text}" if path else entry.key.text
            found.setdefault(id(entry.key), below)
            _walk_paths(entry.value, below, found)
    elif isinstance(node, ListNode):
        for number, item in enumerate(node):
            _walk_paths(item, f"{path}[{number}]", found)


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
