"""Describes the kind `nats`: messages, key-value buckets and objects of a NATS server."""

from typing import Annotated, Any, Literal

from noetl.dsl.kinds import KindExample, Need
from noetl.tools.contract import ToolInput, about, describe

Operation = Literal[
    "publish", "request", "kv_get", "kv_put", "kv_delete", "kv_keys", "object_get", "object_put", "object_delete"
]


class Input(ToolInput, frozen=True, kw_only=True):
    """One operation on a NATS server."""

    operation: Annotated[Operation, about("What to do.", "kv_put")] = "publish"
    subject: Annotated[str | None, about("With `publish` and `request`: where the message goes.", "orders.new")] = None
    stream: Annotated[
        str | None, about("With `publish`: the stream that must confirm the message; without it nobody does.", "ORDERS")
    ] = None
    bucket: Annotated[str | None, about("With `kv_` and `object_` operations: the bucket.", "sessions")] = None
    key: Annotated[
        str | None, about("With `kv_` and `object_` operations: the key or the object's name.", "user.7")
    ] = None
    data: Annotated[
        Any,
        about("What to send or store; text as it is, anything else as JSON.", {"id": 7}, aliases=("payload", "value")),
    ] = None
    headers: Annotated[dict[str, str] | None, about("With `publish` and `request`: headers of the message.")] = None
    url: Annotated[str | None, about("The server, unless the credential names it.")] = None


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
    summary="Sends messages and uses buckets of a NATS server.",
    description="""
    `publish` with a `stream` is confirmed once the stream has the message, and the task's idempotency key is its message id, so
    a retry adds no second one. `request` waits for an answer within the task's time-out. `auth` names the credential of the
    server.
    """,
    needs=_needs(),
    result={
        "data": "The answer or the stored value: parsed when it is JSON, else text; null when there is none.",
        "subject": "Where the message went.",
        "stream": "The stream that confirmed it.",
        "seq": "Its number in the stream.",
        "bucket": "The bucket.",
        "key": "The key or the object's name.",
        "revision": "The number of the stored value's revision.",
        "keys": "With `kv_keys`: the keys of the bucket.",
    },
    extra="nats",
    examples=(
        KindExample(
            "Publish to a stream",
            """
            - announce:
                kind: nats
                auth: nats_main
                subject: orders.new
                stream: ORDERS
                data: { id: "{{ workload.order_id }}" }
            """,
        ),
        KindExample(
            "Read a key",
            """
            - name: cursor
              kind: nats
              auth: nats_main
              operation: kv_get
              bucket: cursors
              key: orders
              set:
                ctx.cursor: "{{ output.data.revision }}"
            """,
        ),
    ),
)
