"""Kind `outbox`: a stored message to another system, delivered at least once."""

from typing import Annotated, Any

from noetl.model.errors import NoetlError, StoreUnavailable
from noetl.model.outcome import Outcome, failed, ok
from noetl.ports import ToolContext
from noetl.ports.outbox import OutboxMessage
from noetl.tools.contract import Seconds, ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """One message."""

    topic: Annotated[str, about("Topic; part of the URL if `url` is not set.", "orders")]
    url: Annotated[
        str | None,
        about(
            "URL to send it to; by default NOETL_OUTBOX_URL and the topic.",
            "https://a.example/in",
            aliases=("address",),
        ),
    ] = None
    payload: Annotated[Any, about("Payload, sent as JSON; by default the task's `input`.", {"order_id": 7})] = None
    headers: Annotated[dict[str, str] | None, about("Request headers.", {"X-Source": "shop"})] = None
    target: Annotated[str, about("Delivery target; packages can add others.")] = "http"
    delay: Annotated[Seconds | None, about("Seconds before the first delivery.", 60)] = None


KIND = describe(
    Input,
    name="outbox",
    summary="Store a message that a relay delivers at least once.",
    description="""
    The task finishes as soon as the message is stored. A server's relay then sends it with `POST` and retries with increasing
    delays until it is accepted. The task's idempotency key is sent as `Idempotency-Key`, and a repeated task stores no second
    message. `auth` names the credential that the relay uses. `noetl outbox` lists, retries and discards messages.
    """,
    result={"number": "Number of the message in the outbox.", "key": "Idempotency key.", "topic": "Topic."},
    examples="""
    # Notify another system, even if it is down
    - tell:
        kind: outbox
        topic: orders
        url: "{{ workload.api_url }}/orders"
        auth: orders_api
        payload: { customer: "{{ workload.customer_id }}" }

    # Send a delayed reminder to the topic's default URL
    - name: remind
      kind: outbox
      topic: reminders
      delay: 3600
      args: { customer: "{{ workload.customer_id }}" }
    """,
)


async def run(input: Input, context: ToolContext) -> Outcome:
    if context.outbox is None:
        return failed("client_error", "no outbox is available in this process", code="NO_OUTBOX")
    if context.auth is not None and not isinstance(context.auth, str):
        return failed(
            "schema", "`auth` of a message must be the name of a credential: secrets are not stored in the outbox"
        )
    now = context.now()
    message = OutboxMessage(
        context.idempotency_key,
        input.topic,
        input.target,
        input.url or "",
        input.payload if input.payload is not None else dict(context.own),
        input.headers or {},
        context.auth or "",
        context.execution_id,
        available_at=now + round((input.delay or 0) * 1000),
    )
    try:
        number = await context.outbox.put(message, now)
    except StoreUnavailable as error:
        return failed("connection", f"cannot reach the outbox: {error}", code="OUTBOX", retryable=True)
    except NoetlError as error:
        return failed("client_error", f"cannot store the message: {error}", code="OUTBOX")
    return ok({"number": number, "key": message.key, "topic": message.topic})
