"""Kind `resolve`: the value behind a reference, whole or in parts."""

from typing import Annotated, Any

import msgspec

from noetl.blobs import manifests
from noetl.blobs.parts import selected
from noetl.model.errors import BadReference, InvalidInput
from noetl.model.manifest import is_list
from noetl.model.outcome import Outcome, failed, ok
from noetl.model.refs import SCHEME, is_manifest, is_ref
from noetl.ports import ToolContext
from noetl.tools.contract import Count, ToolInput, about, describe
from noetl.tools.fields import cut


class Part(ToolInput, frozen=True, kw_only=True):
    """One part of the value."""

    path: Annotated[str, about("JSON path in the value.", "$.items[0].id", rendered="")]
    name: Annotated[str, about("Its name in the result.", "first_id", rendered="")] = msgspec.field(name="as")


class Input(ToolInput, frozen=True, kw_only=True):
    """Reference to resolve, and which parts to return."""

    ref: Annotated[
        str | dict[str, Any] | list[Any],
        about("Reference, its `noetl://` URI, or a list of them.", "{{ ctx.pages_ref }}"),
    ]
    select: Annotated[list[Part] | None, about("Parts to return by name, instead of the whole value.")] = None
    offset: Annotated[Count, about("With a list: number of items to skip.", 1000)] = 0
    limit: Annotated[Count | None, about("With a list: maximum number of items.", 500)] = None


KIND = describe(
    Input,
    name="resolve",
    summary="Resolve a reference to its value.",
    description="""
    Templates resolve references automatically. Use this kind to control where that happens, to read a long list in pages, or to
    select several parts at once. The result is the value, or a map of the selected parts.
    """,
    result=None,
    examples="""
    # Read a long list in pages
    - page:
        kind: resolve
        ref: "{{ workload.report_ref }}"
        offset: 1000
        limit: 500

    # Select two parts of a large result
    - name: parts
      kind: resolve
      ref: "{{ workload.report_ref }}"
      select:
        - { path: $.total, as: total }
        - { path: "$.items[0].id", as: first_id }
      set:
        ctx.total: "{{ output.data.total }}"
    """,
)


async def run(input: Input, context: ToolContext) -> Outcome:
    try:
        part = await _part(input, context)
        value = await _value(input.ref, context) if part is None else part
        if part is None and (input.offset or input.limit is not None):
            if not isinstance(value, list):
                what = "a map" if isinstance(value, dict) else f"a {type(value).__name__}"
                return failed("schema", f"`offset` and `limit` require a list; the value is {what}")
            value = value[input.offset : None if input.limit is None else input.offset + input.limit]
        if input.select is not None:
            value = selected(value, [{"path": part.path, "as": part.name} for part in input.select])
    except BadReference as error:
        return failed("reference", str(error))
    except InvalidInput as error:
        return failed("schema", str(error))
    return ok(value)


async def _part(input: Input, context: ToolContext) -> list[Any] | None:
    """Return a slice of a list stored in parts, reading only those parts; or None."""
    given = input.ref
    if not is_manifest(given) or not is_list(given) or not (input.offset or input.limit is not None):
        return None
    left = max(0, int(given["total"]) - input.offset)
    count = left if input.limit is None else min(left, input.limit)
    return await manifests.items(context.blobs, given, input.offset, count, context.now()) if count else []


async def _value(given: Any, context: ToolContext) -> Any:
    """Resolve a reference, or each of a list; return other values unchanged."""
    if isinstance(given, str):
        if not given.startswith(SCHEME):
            raise BadReference(f"`{cut(context.masked(given), 200)}` is not a reference: its URI begins with {SCHEME}")
        return await manifests.at(context.blobs, given, context.now())
    if isinstance(given, list):
        return [await _value(one, context) if isinstance(one, str) or is_ref(one) else one for one in given]
    if is_ref(given):
        return await manifests.value(context.blobs, given, context.now())
    return given
