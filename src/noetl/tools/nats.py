"""Kind `nats`: messages, key-value buckets and objects of a NATS server."""

from typing import Annotated, Any, Literal

from noetl.dsl.grammar.kinds import Need
from noetl.tools.contract import ToolInput, about, describe

Operation = Literal[
    "publish", "request", "kv_get", "kv_put", "kv_delete", "kv_keys", "object_get", "object_put", "object_delete"
]


class Input(ToolInput, frozen=True, kw_only=True):
    """One operation on a NATS server."""

    operation: Annotated[Operation, about("Operation.", "kv_put")] = "publish"
    subject: Annotated[str | None, about("With `publish` and `request`: subject of the message.", "orders.new")] = None
    stream: Annotated[
        str | None, about("With `publish`: stream that must acknowledge the message; without it, none does.", "ORDERS")
    ] = None
    bucket: Annotated[str | None, about("With `kv_` and `object_` operations: bucket.", "sessions")] = None
    key: Annotated[str | None, about("With `kv_` and `object_` operations: key or object name.", "user.7")] = None
    data: Annotated[
        Any,
        about(
            "Payload or value; strings are sent unchanged, anything else as JSON.",
            {"id": 7},
            aliases=("payload", "value"),
        ),
    ] = None
    headers: Annotated[dict[str, str] | None, about("With `publish` and `request`: message headers.")] = None
    url: Annotated[str | None, about("Server URL, unless the credential has it.")] = None


def _needs() -> tuple[Need, ...]:
    message = [Need("operation", ("subject",), word) for word in ("publish", "request")]
    read = [
        Need("operation", ("bucket", "key"), f"{place}_{do}") for place in ("kv", "object") for do in ("get", "delete")
    ]
    write = [Need("operation", ("bucket", "key", "data"), f"{place}_put") for place in ("kv", "object")]
    return (*message, *read, *write, Need("operation", ("bucket",), "kv_keys"))


KIND = describe(
    Input,
    name="nats",
    summary="Send messages to and use buckets of a NATS server.",
    description="""
    `publish` with a `stream` waits for the stream's acknowledgement, and the task's idempotency key is the message id, so a
    retry is deduplicated. `request` waits for a reply within the task's time-out. `auth` names the credential of the server.
    """,
    needs=_needs(),
    result={
        "data": "Reply or stored value: parsed if it is JSON, else text; null if there is none.",
        "subject": "Subject of the message.",
        "stream": "Stream that acknowledged the message.",
        "seq": "Sequence number in the stream.",
        "bucket": "Bucket.",
        "key": "Key or object name.",
        "revision": "Revision of the stored value.",
        "keys": "With `kv_keys`: keys of the bucket.",
    },
    built=False,
    examples="""
    # Publish to a stream
    - announce:
        kind: nats
        auth: nats_main
        subject: orders.new
        stream: ORDERS
        data: { id: "{{ workload.order_id }}" }

    # Read a key
    - name: cursor
      kind: nats
      auth: nats_main
      operation: kv_get
      bucket: cursors
      key: orders
      set:
        ctx.cursor: "{{ output.data.revision }}"
    """,
)
