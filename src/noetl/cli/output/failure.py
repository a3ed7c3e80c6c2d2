"""Failed steps for people: a sentence, the line of code or the response.

The line of a task's code becomes the line of the playbook's file: the catalog has the text of the version that ran. Prints
nothing. Tested in tests/acceptance/executions/test_errors_shown.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from noetl.model.errors import NoetlError
from noetl.model.outcome import fix_of

if TYPE_CHECKING:
    from noetl.dsl.reading.nodes import Source
    from noetl.dsl.tree.playbook import Playbook
    from noetl.engine.state.execution import Execution
    from noetl.ports import History

Error = Mapping[str, Any]
_MASK = "(masked secret)"


class ErrorPlaces:
    """Finds the lines of errors in the text of the version that ran."""

    def __init__(self, history: History, path: str, playbook: str, started_at: int) -> None:
        self._history = history
        self._path = path
        self._playbook = playbook
        self._started_at = started_at
        self._read: tuple[Source, Playbook] | None = None
        self._is_read = False

    @classmethod
    def of(cls, history: History, state: Execution) -> ErrorPlaces:
        return cls(history, state.path, state.playbook, state.started_at)

    async def ending(self, state: Execution) -> tuple[str | None, Error | None]:
        """Return the step whose error ended the execution, if one did, and that error."""
        failures = [(one["step"], one.get("error")) for one in state.failures]
        failures += [(step, ended.error) for step, ended in state.ended.items()]
        step = next((str(step) for step, error in failures if error and error == state.error), None)
        if step is None or state.error is None:
            return step, state.error
        return step, await self.place(step, state.error)

    async def place(self, step: str, error: Error) -> Error:
        """Add `playbook` and `playbook_line` to each line of an error's code."""
        where = error.get("where")
        if not isinstance(where, Mapping) or "file" in where or not error.get("task"):
            return error
        if not self._is_read:
            self._read, self._is_read = await self._load(), True
        if self._read is None:
            return error
        frames = [self._line(step, error, frame) for frame in where.get("frames", ())]
        found = self._line(step, error, where) | ({"frames": frames} if frames else {})
        return {**error, "where": found}

    def _line(self, step: str, error: Error, place: Mapping[str, Any]) -> dict[str, Any]:
        from noetl.dsl.analysis.embedded_code import file_line

        if "file" in place or self._read is None:
            return dict(place)
        begins = str(place["source"]).partition(_MASK)[0].removesuffix("…")
        line = file_line(*self._read, step, str(error["task"]), place["line"], begins)
        return {**place, **({} if line is None else {"playbook": self._path, "playbook_line": line})}

    async def _load(self) -> tuple[Source, Playbook] | None:
        from noetl.dsl.reading.parse import parse
        from noetl.dsl.tree.normalize import normalize

        try:
            same = [one for one in await self._history.versions(self._path) if one["playbook"] == self._playbook]
            earlier = [one for one in same if one["registered_at"] <= self._started_at]
            chosen = earlier[:1] or same[-1:]  # the newest at its start
            found = await self._history.find(self._path, chosen[0]["version"]) if chosen else None
        except NoetlError:  # the error is shown without it
            return None
        if found is None:
            return None
        document = parse(found["content"], self._path)
        return document.source, normalize(document)


def failure_lines(
    execution_id: str,
    step: str | None,
    error: Error,
    *,
    frames: bool = True,
    files: Mapping[str, str] | None = None,
) -> list[str]:
    """Return a failure as lines; `files` are the files of playbooks by path."""
    first, *more = error_lines(execution_id, error, frames=frames, files=files or {})
    return [f"Step `{step}` failed: {first}" if step else f"The execution ended with an error: {first}", *more]


def error_lines(
    execution_id: str, error: Error, *, frames: bool = True, files: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the message, the line of code, the last frames, and what was answered."""
    where, names = error.get("where") or {}, files or {}
    message = str(error.get("message") or "no message")
    yield (
        message.replace(f" (line {where.get('line')} of {where.get('file', 'the code')})", "", 1) if where else message
    )
    if where:
        yield f"  {_place(where, names)}: {where.get('source', '')}"
    shown = where.get("frames", ()) if frames else ()
    if len(shown) > 1:
        yield "  Last frames:"
        yield from (f"    {_place(one, names)}, in {one['in']}: {one['source']}" for one in shown)
    details = error.get("details") or {}
    for name in ("body", "output"):
        shown_text = str(details.get(name) or "")
        if shown_text.strip() not in message:
            yield from (f"  {line}" for line in shown_text.splitlines())
    if fix := fix_of(error, execution_id):
        yield f"  fix: {fix}"


def _place(place: Mapping[str, Any], files: Mapping[str, str]) -> str:
    if "playbook_line" in place:
        return f"{files.get(place['playbook'], place['playbook'])}:{place['playbook_line']}"
    return f"{place['file']}:{place['line']}" if "file" in place else f"line {place.get('line')} of the code"
