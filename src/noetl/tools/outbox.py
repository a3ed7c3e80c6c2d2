"""The kind `outbox`: a message for another system, written down first and delivered afterwards, at least once."""

from typing import Annotated, Any

from noetl.dsl.kinds import KindExample
from noetl.model.errors import NoetlError, StoreUnavailable
from noetl.model.outcome import Outcome, failed, ok
from noetl.ports import ToolContext
from noetl.ports.outbox import OutboxMessage
from noetl.tools.contract import Seconds, ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """One message."""

    topic: Annotated[str, about("What it is about; part of the address where none is given.", "orders")]
    url: Annotated[
        str | None,
        about(
            "Where to send it; by default NOETL_OUTBOX_URL and the topic.", "https://a.example/in", aliases=("address",)
        ),
    ] = None
    payload: Annotated[Any, about("What it says, sent as JSON; without it the task's `input`.", {"order_id": 7})] = None
    headers: Annotated[dict[str, str] | None, about("Headers of the request.", {"X-Source": "shop"})] = None
    target: Annotated[str, about("What delivers it; packages add others.")] = "http"
    delay: Annotated[Seconds | None, about("Seconds before it is sent for the first time.", 60)] = None


KIND = describe(
    Input,
    name="outbox",
    summary="Writes a message down that a relay delivers, at least once.",
    description="""
    The task ends as soon as the message is in the store; a relay of one of the servers then sends it with `POST`, and again
    with growing delays until it is taken. The task's idempotency key goes along as `Idempotency-Key`, and a task that is run
    again puts no second message. `auth` names the credential that the relay uses. `noetl outbox` lists, retries and discards
    messages.
    """,
    result={
        "number": "The message's number in the outbox.",
        "key": "Its idempotency key.",
        "topic": "What it is about.",
    },
    examples=(
        KindExample(
            "Tell another system, whatever happens to it meanwhile",
            """
            - tell:
                kind: outbox
                topic: orders
                url: "{{ workload.api_url }}/orders"
                auth: orders_api
                payload: { customer: "{{ workload.customer_id }}" }
            """,
        ),
        KindExample(
            "A reminder, to the address that the server has for topics",
            """
            - name: remind
              kind: outbox
              topic: reminders
              delay: 3600
              args: { customer: "{{ workload.customer_id }}" }
            """,
        ),
    ),
)


async def run(input: Input, context: ToolContext) -> Outcome:
    if context.outbox is None:
        return failed("client_error", "there is no outbox where this runs", code="NO_OUTBOX")
    if context.auth is not None and not isinstance(context.auth, str):
        return failed("schema", "`auth` of a message is the name of a credential: what it holds is not written down")
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
        return failed("connection", f"the outbox cannot be reached: {error}", code="OUTBOX", retryable=True)
    except NoetlError as error:
        return failed("client_error", f"the message cannot be put: {error}", code="OUTBOX")
    return ok({"number": number, "key": message.key, "topic": message.topic})
