"""Kind `secrets`: read a secret from a secret store."""

from typing import Annotated

from noetl.model.errors import CredentialUnavailable
from noetl.model.outcome import Outcome, failed, ok
from noetl.ports import ToolContext
from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """Secret to read, and its provider."""

    provider: Annotated[
        str,
        about(
            "Provider: `stored` is NoETL's own store, `env` the worker's environment, `file` a secret that Docker or Kubernetes "
            "mounts. Secret managers: `vault` (also `openbao`), `aws`, `google` (also `gcp`), `azure`, and those of packages.",
            "aws",
        ),
    ] = "stored"
    secret: Annotated[str, about("Name of the secret.", "orders-api-token", aliases=("secret_name",))]
    version: Annotated[str | int | float | None, about("Version; by default the latest.", 3)] = None
    field: Annotated[str | None, about("Key to select if the secret is a JSON map.", "password")] = None
    project: Annotated[str | None, about("With `google`: project.", "acme-prod", aliases=("project_id",))] = None
    region: Annotated[str | None, about("With `aws`: region.", "eu-central-1")] = None
    url: Annotated[str | None, about("With `vault` and `azure`: URL of the vault.")] = None


KIND = describe(
    Input,
    name="secrets",
    summary="Read a secret for later tasks of the same pipeline.",
    description="""
    The value never leaves the worker: it is masked in events, logs and results, and writing it to `ctx` is refused. Prefer
    `auth` on the task that needs the secret; use this kind if a tool has no field for a credential. Here, `auth` names the
    credential of the secret manager.
    """,
    result={
        "value": "Secret, for later tasks of this pipeline; masked everywhere else.",
        "version": "Version that was read.",
        "provider": "Provider it was read from.",
        "secret": "Name of the secret.",
    },
    examples="""
    # Read from NoETL's own store
    - token:
        kind: secrets
        secret: orders-api-token

    # Read one key of a secret in a secret manager
    - name: db_password
      kind: secrets
      provider: google
      project: acme-prod
      secret: orders-db
      field: password
      auth: gcs_reader
    """,
)


async def run(input: Input, context: ToolContext) -> Outcome:
    where = {
        "version": None if input.version is None else str(input.version),
        "project": input.project,
        "region": input.region,
        "url": input.url,
    }
    try:
        value, version = await context.secret(input.provider, input.secret, input.field, **where)
    except CredentialUnavailable as error:
        return failed("auth", str(error), code="SECRET", retryable=error.retryable)
    return ok({"value": value, "version": version, "provider": input.provider, "secret": input.secret})
