"""Describes the kind `artifact`: results and files in the stores, read and written by reference."""

from typing import Annotated, Any, Literal

from noetl.dsl.kinds import KindExample, Need
from noetl.tools.contract import ToolInput, about, describe


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
    your choice, or to read what another execution left. `auth` names the credential of an object store.
    """,
    needs=(Need("action", ("ref",), "get"), Need("action", ("data",), "put")),
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
