"""Run one attempt of a task of any kind as a worker does; return outcome and log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from noetl.clock import SteadyClock
from noetl.engine.tasks.actions import RunTask
from noetl.engine.tasks.run_info import RunInfo
from noetl.model.outcome import Outcome, TaskError
from noetl.ports import Blobs, ControlPlane
from noetl.ports.work import run_tool
from noetl.tools import kinds
from noetl.worker.http.egress import Egress
from noetl.worker.processes.bounds import Bounds
from noetl.worker.processes.children import ChildPool
from noetl.worker.processes.walls import Walls
from noetl.worker.tool_context import DetachedRun, Shared, TaskContext, WorkerResources


@dataclass(frozen=True)
class Tried:
    """What an attempt came to."""

    outcome: Outcome
    lines: list[str]

    @property
    def result(self) -> Any:
        """The result of an attempt that must have gone well."""
        assert self.outcome.status == "ok", self.outcome.error
        return self.outcome.result

    @property
    def error(self) -> TaskError:
        """The error of an attempt that must have failed."""
        assert self.outcome.error is not None, self.outcome
        return self.outcome.error


class Attempts:
    """One worker's equipment, without a control plane: tools do not speak to it."""

    def __init__(
        self,
        credentials: Mapping[str, Mapping[str, Any]] | None = None,
        folder: str = ".",
        blobs: Blobs | None = None,
        http: Any = None,
        sandbox: str = "none",
        hidden: Sequence[str] = (),
        writable: Sequence[str] = (),
        has_network: bool = True,
        egress: Egress | None = None,
        bounds: Bounds = Bounds(memory=4 << 30),  # noqa: B008 - it is immutable
    ) -> None:
        self.children = ChildPool(
            bounds=bounds, sandbox=sandbox, hidden=hidden, writable=writable, has_network=has_network
        )
        self.egress = egress
        self.walls = Walls(sandbox, hidden, writable, self.children.scratch, has_network=has_network and egress is None)
        self.blobs = blobs
        self.http = http
        self.shared = Shared()
        self.folder = folder
        self.confirm: Any = None
        self._credentials = credentials or {}

    async def credential(self, name: str) -> Mapping[str, Any]:
        return self._credentials[name]

    async def run(
        self,
        kind: str,
        fields: Mapping[str, Any],
        *,
        input: Mapping[str, Any] | None = None,
        names: Mapping[str, Any] | None = None,
        auth: Any = None,
        execution_id: str = "7",
    ) -> Tried:
        clock = SteadyClock()
        shared = WorkerResources(
            cast(ControlPlane, None),
            kinds(),
            kinds(),
            clock,
            self.children,
            cast(Blobs, self.blobs),
            lambda *_: self.http,
            self.credential,
            folder=self.folder,
            shared=self.shared,
            walls=self.walls,
            egress=self.egress,
        )
        given = dict(input or {})
        task = RunTask("try", kind, fields, given, given, 1, f"{execution_id}:s:try", auth, context=dict(names or {}))
        context = TaskContext(DetachedRun(shared, RunInfo(execution_id, "s")), task)
        context.know(auth)
        runner = kinds().runner(kind)
        assert runner is not None
        outcome = await run_tool(runner, fields, context)
        logged = context.lines.records() if context.lines is not None else []
        return Tried(outcome, [line[2] for record in logged for line in record.payload["lines"]])

    async def python(self, code: str, fields: Mapping[str, Any] | None = None, **more: Any) -> Tried:
        """Run code; keywords that `run` does not know are its inputs."""
        known = {name: more.pop(name) for name in ("names", "auth", "execution_id") if name in more}
        return await self.run("python", {"code": code, **(fields or {})}, input=more, **known)

    async def close(self) -> None:
        await self.shared.close()
        await self.children.close()
