"""Provenance of a step-run: the versions of what runs it.

It is reported with the first report of a lease and recorded in `step.started`. Tested in
tests/unit/worker/steps/test_provenance.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from platform import python_version
from typing import Any, Final

from noetl import __version__
from noetl.dsl.grammar.kinds import Kinds
from noetl.dsl.tree.playbook import Step, Task

_CONTAINER: Final = "container"


def runtime_of(step: Step, kinds: Kinds, image: str) -> Mapping[str, Any]:
    """Return the versions of NoETL, Python, the step's kinds, and images.

    `image` is that of the worker. An image of a `container` task is known here unless it is a template.
    """
    versions = tuple((task.kind, kinds[task.kind].version or __version__) for task in step.tasks if task.kind in kinds)
    images = tuple(found for task in step.tasks if (found := _image(task)))
    return _runtime(versions, image, images)


@lru_cache(maxsize=1_024)
def _runtime(versions: tuple[tuple[str, str], ...], image: str, images: tuple[str, ...]) -> Mapping[str, Any]:
    found: dict[str, Any] = {"noetl": __version__, "python": python_version(), "tools": dict(versions)}
    found |= {"image": image} if image else {}
    return found | ({"images": list(dict.fromkeys(images))} if images else {})


def _image(task: Task) -> str:
    node = task.fields.get("image") if task.kind == _CONTAINER else None
    return node.data if node is not None and isinstance(node.data, str) and "{" not in node.data else ""
