"""The error tree: every exception of NoETL, with its exit code.

    NoetlError
    ├── InvalidInput        invalid input (exit 2)
    │   ├── InvalidPlaybook
    │   ├── InvalidPayload
    │   ├── InvalidSetting  settings of this process; all of them are reported at once
    │   ├── MissingCredentials  the playbook needs credentials that are not stored
    │   └── UnknownExecution
    ├── Conflict            it was changed concurrently
    │   ├── LimitReached    `executor.spec.concurrency` or `rate` admits no further execution
    │   └── Passed          another server has taken in this message of a subscription
    ├── BadReference        a stored result is missing or damaged
    ├── CredentialUnavailable  a credential exists and cannot be resolved now
    ├── StoreUnavailable    the store cannot be reached or written; retry
    │   ├── Overloaded      the admission queue is full; retry after `retry_after_s`
    │   └── Unreachable     the server cannot be reached; retry
    ├── SourceUnavailable   the source of a subscription cannot be read now; retry
    ├── Denied              not permitted
    ├── Undecided           a message cannot be decided; it becomes a dead letter
    └── Foreign             the log has events of a newer version; this process must not decide it

A docstring is the default message. Expected failures of tasks are values (`outcome`), not exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class NoetlError(Exception):
    """Something went wrong in NoETL."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class InvalidInput(NoetlError):
    """The input is invalid."""

    exit_code = 2


class InvalidSetting(InvalidInput):
    """A setting has a name or a value that does not fit."""

    def __init__(self, message: str = "", *, variable: str = "") -> None:
        super().__init__(message)
        self.variable = variable  # empty: the message is about a file


class InvalidPlaybook(InvalidInput):
    """The playbook has errors; `noetl validate` lists them."""


class InvalidPayload(InvalidInput):
    """The payload does not match the playbook's workload schema."""


class MissingCredentials(InvalidInput):
    """The playbook needs credentials that are not stored."""

    def __init__(self, what: str = "", missing: tuple[Mapping[str, Any], ...] = (), fix: str = "") -> None:
        lines = [what, *(f"  {one['message']}" for one in missing), *([fix] if fix else [])]
        super().__init__("\n".join(lines))
        self.what, self.missing, self.fix = what, missing, fix


class UnknownExecution(InvalidInput):
    """There is no such execution in this store."""


class Conflict(NoetlError):
    """The execution was changed concurrently; retry."""


class LimitReached(Conflict):
    """As many executions run as the playbook allows at once."""


class Passed(Conflict):
    """Another server has taken in this message of the subscription."""


class BadReference(NoetlError):
    """A stored result is missing or damaged."""


class CredentialUnavailable(NoetlError):
    """A credential cannot be resolved now."""

    def __init__(self, message: str = "", *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class StoreUnavailable(NoetlError):
    """The store cannot be reached or written now."""


class Overloaded(StoreUnavailable):
    """The server is overloaded; retry later."""

    retry_after_s = 1.0


class Unreachable(StoreUnavailable):
    """The server cannot be reached now."""


class SourceUnavailable(NoetlError):
    """The source of the subscription cannot be read now."""


class Denied(NoetlError):
    """You do not have permission for this."""


class Undecided(NoetlError):
    """The server cannot decide this message; it is now a dead letter."""


class Foreign(NoetlError):
    """This execution has events that a newer version wrote."""


def log_level(error: object) -> int:
    """Return the level at which a task that tries again later logs an error.

    DEBUG for an outage: store and session log once that they lost the other side, and once that it is back.
    """
    return 10 if isinstance(error, StoreUnavailable) and not isinstance(error, Overloaded) else 30
