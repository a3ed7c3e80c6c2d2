"""The kind `artifact`: results and files in the stores, read and written by reference."""

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from noetl.blobs import manifests, pieces, stored
from noetl.dsl.kinds import KindExample, Need
from noetl.model.errors import BadReference, InvalidInput, NoetlError
from noetl.model.outcome import Outcome, failed, ok
from noetl.model.refs import SCHEME, address, is_manifest, is_ref
from noetl.ports import ToolContext
from noetl.tools.contract import ToolInput, about, describe
from noetl.tools.fields import SqlInput, WriteMode
from noetl.tools.rows import Place, write_rows
from noetl.tools.tables import KEY_COLUMN, RowsError, rows_to_write


class Store(ToolInput, frozen=True, kw_only=True):
    """Which store keeps an artifact, and for how long."""

    kind: Annotated[
        Literal["auto", "inline", "db", "file", "s3", "gcs", "azure", "nats_kv", "nats_object"],
        about("Which store; `auto` picks by size.", "s3"),
    ] = "auto"
    scope: Annotated[
        Literal["step", "execution", "workflow", "permanent"] | None,
        about("How long others may refer to it.", "execution"),
    ] = None
    ttl: Annotated[str | float | None, about("When it may be removed: seconds, or a text such as `7d`.", "7d")] = None
    compression: Annotated[
        Literal["none", "gzip", "zstd", "lz4"] | None, about("How the bytes are packed.", "zstd")
    ] = None
    bucket: Annotated[str | None, about("The bucket or container of an object store.", "results")] = None
    prefix: Annotated[str | None, about("What the object's name begins with.", "orders/")] = None


class Input(ToolInput, frozen=True, kw_only=True):
    """What to read or write."""

    action: Annotated[Literal["get", "put"], about("Read it or write it.", "put")] = "get"
    ref: Annotated[
        str | dict[str, Any] | None,
        about(
            "The artifact: a reference, its `noetl://` address, or the address of an object in a store.",
            "{{ ctx.report_ref }}",
            aliases=("uri",),
        ),
    ] = None
    data: Annotated[Any, about("With `put`: what to write; text as it is, anything else as JSON.", {"rows": []})] = None
    mode: Annotated[
        WriteMode | None,
        about(
            "With `put` to a file: `data` is a row or a list of rows, and how they meet those of the file.", "upsert"
        ),
    ] = None
    key: Annotated[
        str | list[str] | None,
        about("With `mode`: the columns that tell rows apart; `insert` leaves known ones.", "id"),
    ] = None
    content_type: Annotated[str | None, about("With `put`: what the bytes are.", "text/csv")] = None
    store: Annotated[
        Store | str | None, about("With `put`: which store keeps it; a text is the store's kind.", {"kind": "s3"})
    ] = None


KIND = describe(
    Input,
    name="artifact",
    summary="Reads or writes a stored result or file by reference.",
    description="""
    Large results are stored anyway and read where a template needs them; use this kind to store something under an address of
    your choice, or to read what another execution left. `auth` names the credential of an object store. A file is replaced as
    a whole. With `mode` rows are written to a file of CSV, JSON, JSON lines or Parquet, as its name tells: `append` adds them,
    `insert` with a `key` only those that are not there, `upsert` puts them in the place of rows with the same `key`, by default
    the task's idempotency key, and `overwrite` replaces all.
    """,
    needs=(Need("action", ("ref",), "get"), Need("action", ("data",), "put"), Need("key", ("mode",))),
    result={
        "ref": "The artifact's reference.",
        "store": "The kind of store that keeps it.",
        "bytes": "Its size.",
        "sha256": "The hash of its bytes.",
        "content_type": "What the bytes are.",
        "data": "With `get`: the content; parsed when it is JSON, else text.",
    },
    examples=(
        KindExample(
            "Write a file to a bucket",
            """
            - save:
                kind: artifact
                action: put
                auth: s3_writer
                uri: "s3://reports/{{ workload.since }}.csv"
                content_type: text/csv
                data: "{{ workload.report }}"
            """,
        ),
        KindExample(
            "Keep one row per customer in a file",
            """
            - note:
                kind: artifact
                action: put
                uri: file://out/customers.jsonl
                mode: upsert
                key: id
                data: { id: "{{ workload.customer_id }}", since: "{{ workload.since }}" }
            """,
        ),
        KindExample(
            "Read what an earlier run stored",
            """
            - name: load
              kind: artifact
              action: get
              ref: "{{ workload.report_ref }}"
              set:
                ctx.report: "{{ output.data.data }}"
            """,
        ),
    ),
)

_RESULTS = f"{SCHEME}execution/"  # where the results of tasks are; nobody else writes there
_FILE = "file://"
_TEXT = "text/plain; charset=utf-8"
_SMALL = 1 << 20  # what `auto` still puts in the store's own file
_TYPES = {".json": stored.JSON, ".csv": "text/csv", ".html": "text/html", ".md": "text/markdown"}


async def run(input: Input, context: ToolContext) -> Outcome:
    try:
        return ok(await (_get(input, context) if input.action == "get" else _put(input, context)))
    except BadReference as error:
        return failed("reference", str(error))
    except InvalidInput as error:
        return failed("client_error", str(error))
    except RowsError as error:
        return error.outcome
    except (NoetlError, OSError) as error:
        return failed("reference", f"the store cannot be used now: {error}", retryable=True)


async def _get(input: Input, context: ToolContext) -> dict[str, Any]:
    told = input.ref.get("meta") if isinstance(input.ref, Mapping) else None
    ref = _address(input.ref)
    if ref.startswith(_FILE):
        path = _path(ref, context)
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            raise BadReference(f"the file {path} cannot be read: {error.strerror}") from None
        meta: Mapping[str, Any] = _told(data, _TYPES.get(path.suffix, _TEXT))
        store = "file"
    elif is_manifest(input.ref):
        return await _whole(input.ref, context)
    else:
        data, meta = await stored.get(context.blobs, ref, told)
        about = await context.blobs.about(ref)
        manifests.check({**about, "ref": ref}, context.now())
        store = about.get("store", "")
        if about.get("content_type") == manifests.MANIFEST_TYPE:
            return await _whole(await stored.decoded(data, stored.JSON, ref), context)
    content_type = str(meta["content_type"])
    return {**_shown(ref, store, meta), "data": await stored.decoded(data, content_type, ref)}


async def _whole(reference: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    """Give what the parts of a manifest are together."""
    value = await manifests.value(context.blobs, reference, context.now())
    shown = _told(await pieces.encoded(value), stored.JSON)
    return {**_shown(str(reference["ref"]), str(reference.get("store")), shown), "data": value}


async def _put_rows(input: Input, context: ToolContext) -> dict[str, Any]:
    """Write rows to a file; it has them all or is as it was."""
    ref = _address(input.ref)
    if not ref.startswith(_FILE):
        raise InvalidInput(f"`mode` is for rows of a file: an address that begins with {_FILE}")
    if not isinstance(input.data, dict) and not (
        isinstance(input.data, list) and all(isinstance(row, dict) for row in input.data)
    ):
        raise InvalidInput("with `mode`, `data` is a row or a list of rows, each a map from column to value")
    how = SqlInput(mode=input.mode, key=input.key, values=input.data)
    rows = rows_to_write(how, context)
    if input.mode == "upsert" and input.key is None:
        how = SqlInput(mode=input.mode, key=KEY_COLUMN)
    path = _path(ref, context)
    async with write_rows(Place(kind="file", path=str(path)), how, context) as add:
        await add(rows)
    data = await asyncio.to_thread(path.read_bytes)
    return _shown(ref, "file", _told(data, input.content_type or _TYPES.get(path.suffix, _TEXT)))


async def _put(input: Input, context: ToolContext) -> dict[str, Any]:
    if input.mode is not None:
        return await _put_rows(input, context)
    is_text = isinstance(input.data, str)
    data = input.data.encode() if is_text else await pieces.encoded(input.data)
    content_type = input.content_type or (_TEXT if is_text else stored.JSON)
    if input.ref is None:
        ref = address(context.execution_id, context.step, f"{context.idempotency_key}.artifact", 1, context.attempt)
    else:
        ref = _address(input.ref)
        if ref.startswith(_RESULTS):
            raise InvalidInput(f"the results of tasks are not written over: choose an address outside {_RESULTS}")
    if ref.startswith(_FILE):
        path = _path(ref, context)
        await asyncio.to_thread(_write, path, data)
        return _shown(ref, "file", _told(data, content_type))
    place = input.store if isinstance(input.store, Store) else Store()
    named = input.store if isinstance(input.store, str) else place.kind
    store = ("db" if len(data) <= _SMALL else "file") if named == "auto" else named
    packing = place.compression or "none"
    if packing not in stored.PACKINGS:
        raise InvalidInput(f"artifacts cannot be packed with `{packing}` here; use one of {', '.join(stored.PACKINGS)}")
    now = context.now()
    scope = place.scope or ("execution" if ref.startswith(_RESULTS) else "permanent")
    terms = {**stored.terms(scope, stored.expiry(place.ttl, now), now), "artifact": True}
    terms["idempotency_key"] = context.idempotency_key
    meta = await stored.put(context.blobs, ref, data, store, content_type, packing, terms)
    return _shown(ref, store, meta)


def _address(ref: Any) -> str:
    text = str(ref["ref"]) if is_ref(ref) else ref
    if isinstance(text, str) and text.startswith((SCHEME, _FILE)):
        return text
    raise InvalidInput(f"`{str(text)[:200]}` cannot be reached here: an address begins with {SCHEME} or {_FILE}")


def _path(ref: str, context: ToolContext) -> Path:
    return Path(context.folder, ref.removeprefix(_FILE))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".noetl-", dir=path.parent) as folder:
        whole = Path(folder, path.name)
        whole.write_bytes(data)
        whole.replace(path)


def _told(data: bytes, content_type: str) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": sha256(data).hexdigest(), "content_type": content_type}


def _shown(ref: str, store: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    return {"ref": ref, "store": store, **{name: meta[name] for name in ("bytes", "sha256", "content_type")}}
