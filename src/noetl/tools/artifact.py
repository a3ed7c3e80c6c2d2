"""Kind `artifact`: results and files in stores, read and written by reference."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from noetl.blobs import manifests, pieces, stored
from noetl.dsl.grammar.kinds import Need
from noetl.model.errors import BadReference, InvalidInput, NoetlError
from noetl.model.outcome import Outcome, failed, ok
from noetl.model.refs import SCHEME, address, is_manifest, is_ref
from noetl.ports import ToolContext
from noetl.tools.contract import ToolInput, about, describe
from noetl.tools.fields import SqlInput, WriteMode, cut
from noetl.tools.sql.chunk import Maps
from noetl.tools.sql.files import in_own_thread, read_file
from noetl.tools.sql.rows import Place, write_rows
from noetl.tools.sql.statements import KEY_COLUMN, RowsError, rows_to_write

GIVEN = "result_ref"  # in `input`: what to read


class Store(ToolInput, frozen=True, kw_only=True):
    """Which store keeps an artifact, and for how long."""

    kind: Annotated[
        Literal["auto", "inline", "db", "file", "s3", "gcs", "azure", "nats_kv", "nats_object", "kv"],
        about(
            "Store; `auto` chooses by size, `kv` means `nats_kv` where NATS is set up, else `db`. This version has `db` and `file`.",
            "file",
        ),
    ] = "auto"
    scope: Annotated[
        Literal["step", "execution", "workflow", "permanent"] | None, about("Lifetime of the reference.", "execution")
    ] = None
    ttl: Annotated[str | float | None, about("Time to live: seconds, or a duration such as `7d`.", "7d")] = None
    compression: Annotated[
        Literal["none", "gzip", "zstd", "lz4"] | None, about("Compression. This version has `none` and `gzip`.", "gzip")
    ] = None
    bucket: Annotated[str | None, about("Bucket or container of an object store.", "results")] = None
    prefix: Annotated[str | None, about("Prefix of the object's name.", "orders/")] = None


class Input(ToolInput, frozen=True, kw_only=True):
    """Artifact to read or write."""

    action: Annotated[Literal["get", "put"], about("Read or write.", "put")] = "get"
    ref: Annotated[
        str | dict[str, Any] | None,
        about(
            "Artifact: a reference, its `noetl://` URI, or the URI of an object in a store.",
            "{{ ctx.report_ref }}",
            aliases=("uri", "result_ref"),
        ),
    ] = None
    data: Annotated[
        Any, about("With `put`: content; strings are written unchanged, anything else as JSON.", {"rows": []})
    ] = None
    mode: Annotated[
        WriteMode | None,
        about("With `put` to a file: `data` is a row or a list of rows, and this is how to write them.", "upsert"),
    ] = None
    key: Annotated[str | list[str] | None, about("With `mode`: key columns; `insert` keeps existing rows.", "id")] = (
        None
    )
    content_type: Annotated[str | None, about("With `put`: content type.", "text/csv")] = None
    store: Annotated[
        Store | str | None, about("With `put`: store; a string is the store's kind.", {"kind": "file"})
    ] = None


KIND = describe(
    Input,
    name="artifact",
    summary="Read or write a stored result or file by reference.",
    description="""
    Large results are stored automatically and read where a template needs them. Use this kind to store something under a URI
    of your choice, or to read an artifact of another execution. `auth` names the credential of an object store. A file is
    replaced atomically. With `mode`, rows are written to a CSV, JSON, JSON lines or Parquet file, by its extension: `append`
    adds rows, `insert` with a `key` adds rows with new keys, `upsert` replaces rows with the same `key` (by default the task's
    idempotency key), `overwrite` replaces all rows.
    """,
    needs=(Need("action", ("ref",), "get", instead=(GIVEN,)), Need("action", ("data",), "put"), Need("key", ("mode",))),
    result={
        "ref": "Reference of the artifact.",
        "store": "Kind of the store.",
        "bytes": "Size in bytes.",
        "sha256": "SHA-256 hash of the content.",
        "content_type": "Content type.",
        "data": "With `get`: the content; parsed if it is JSON, else text.",
    },
    examples="""
    # Write a file to a bucket
    - save:
        kind: artifact
        action: put
        auth: s3_writer
        uri: "s3://reports/{{ workload.since }}.csv"
        content_type: text/csv
        data: "{{ workload.report }}"

    # Keep one row per customer in a file
    - note:
        kind: artifact
        action: put
        uri: file://out/customers.jsonl
        mode: upsert
        key: id
        data: { id: "{{ workload.customer_id }}", since: "{{ workload.since }}" }

    # Read an artifact of an earlier run
    - name: load
      kind: artifact
      action: get
      ref: "{{ workload.report_ref }}"
      set:
        ctx.report: "{{ output.data.data }}"
    """,
)

_RESULTS = f"{SCHEME}execution/"  # reserved for results of tasks
_FILE = "file://"
_TEXT = "text/plain; charset=utf-8"
_SMALL = 1 << 20  # largest content that `auto` keeps in the database
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
    except PermissionError as error:
        return failed("client_error", f"cannot write: {error}", code="CONFINED")
    except (NoetlError, OSError) as error:
        return failed("reference", f"the store is unavailable: {error}", retryable=True)


async def _get(input: Input, context: ToolContext) -> dict[str, Any]:
    given = context.input.get(GIVEN) if input.ref is None else input.ref
    if given is None:
        raise InvalidInput("`ref` is missing: the reference of what to read")
    ref = _address(given, context)
    if ref.startswith(_FILE):
        path = _path(ref, context)
        try:
            async with context.thread() as thread:
                data = await read_file(path, thread)
        except OSError as error:
            raise BadReference(f"cannot read the file {path}: {error.strerror}") from None
        meta: Mapping[str, Any] = _content_info(data, _TYPES.get(path.suffix, _TEXT))
        store = "file"
    elif is_manifest(given):
        return await _whole(given, context)
    else:
        data, meta = await stored.get(context.blobs, ref, given.get("meta") if isinstance(given, Mapping) else None)
        about = await context.blobs.about(ref)
        manifests.check({**about, "ref": ref}, context.now())
        store = about.get("store", "")
        if about.get("content_type") == manifests.MANIFEST_TYPE:
            return await _whole(await stored.decoded(data, stored.JSON, ref), context)
    content_type = str(meta["content_type"])
    return {**_artifact_info(ref, store, meta), "data": await stored.decoded(data, content_type, ref)}


async def _whole(reference: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
    value = await manifests.value(context.blobs, reference, context.now())
    shown = _content_info(await pieces.encoded(value), stored.JSON)
    return {**_artifact_info(str(reference["ref"]), str(reference.get("store")), shown), "data": value}


async def _put_rows(input: Input, context: ToolContext) -> dict[str, Any]:
    """Write rows to a file, all or none."""
    ref = _address(input.ref, context)
    if not ref.startswith(_FILE):
        raise InvalidInput(f"`mode` requires a file: a URI that begins with {_FILE}")
    if not isinstance(input.data, dict) and not (
        isinstance(input.data, list) and all(isinstance(row, dict) for row in input.data)
    ):
        raise InvalidInput("with `mode`, `data` must be a row or a list of rows, each a map from column to value")
    how = SqlInput(mode=input.mode, key=input.key, values=input.data)
    rows = rows_to_write(how, context)
    if input.mode == "upsert" and input.key is None:
        how = SqlInput(mode=input.mode, key=KEY_COLUMN)
    path = _path(ref, context)
    async with write_rows(Place(kind="file", path=str(path)), how, context) as add:
        await add(Maps(rows))
    async with context.thread() as thread:
        data = await read_file(path, thread)
    return _artifact_info(ref, "file", _content_info(data, input.content_type or _TYPES.get(path.suffix, _TEXT)))


async def _put(input: Input, context: ToolContext) -> dict[str, Any]:
    if input.mode is not None:
        return await _put_rows(input, context)
    is_text = isinstance(input.data, str)
    data = input.data.encode() if is_text else await pieces.encoded(input.data)
    content_type = input.content_type or (_TEXT if is_text else stored.JSON)
    if input.ref is None:
        ref = address(context.execution_id, context.step, f"{context.idempotency_key}.artifact", 1, context.attempt)
    else:
        ref = _address(input.ref, context)
        if ref.startswith(_RESULTS):
            raise InvalidInput(f"results of tasks cannot be overwritten: choose a URI outside {_RESULTS}")
    if ref.startswith(_FILE):
        path = _path(ref, context)
        async with context.thread() as thread:
            await in_own_thread(thread, _write, path, data)
        return _artifact_info(ref, "file", _content_info(data, content_type))
    place = input.store if isinstance(input.store, Store) else Store()
    named = input.store if isinstance(input.store, str) else place.kind
    store = ("db" if len(data) <= _SMALL else "file") if named == "auto" else "db" if named == "kv" else named
    packing = place.compression or "none"
    if packing not in stored.PACKINGS:
        raise InvalidInput(f"compression `{packing}` is not supported; use one of {', '.join(stored.PACKINGS)}")
    now = context.now()
    scope = place.scope or ("execution" if ref.startswith(_RESULTS) else "permanent")
    terms = {**stored.terms(scope, stored.expiry(place.ttl, now), now), "artifact": True}
    terms["idempotency_key"] = context.idempotency_key
    meta = await stored.put(context.blobs, ref, data, store, content_type, packing, terms)
    return _artifact_info(ref, store, meta)


def _address(ref: Any, context: ToolContext) -> str:
    text = str(ref["ref"]) if is_ref(ref) else ref
    if isinstance(text, str) and text.startswith((SCHEME, _FILE)):
        return text
    raise InvalidInput(
        f"`{cut(context.masked(str(text)), 200)}` is not supported: a URI begins with {SCHEME} or {_FILE}"
    )


def _path(ref: str, context: ToolContext) -> Path:
    return Path(context.folder, ref.removeprefix(_FILE))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".noetl-", dir=path.parent) as folder:
        whole = Path(folder, path.name)
        whole.write_bytes(data)
        whole.replace(path)


def _content_info(data: bytes, content_type: str) -> dict[str, Any]:
    return {"bytes": len(data), "sha256": sha256(data).hexdigest(), "content_type": content_type}


def _artifact_info(ref: str, store: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    return {"ref": ref, "store": store, **{name: meta[name] for name in ("bytes", "sha256", "content_type")}}
