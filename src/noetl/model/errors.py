"""The error tree: everything that NoETL itself raises, with an exit code for each branch.

    NoetlError
    ├── InvalidInput        what was given cannot be used (exit 2)
    │   ├── InvalidPlaybook
    │   ├── InvalidPayload
    │   └── UnknownExecution
    ├── Conflict            somebody else changed or holds it
    ├── BadReference        a stored result cannot be had, or is not what was stored
    ├── CredentialUnavailable  a credential is known and cannot be resolved now
    ├── StoreUnavailable    the store cannot be reached or written; try again
    │   └── Unreachable     the server cannot be reached; try again
    ├── Denied              whoever asks may not
    │   └── Overloaded      more is under way than the server takes; try again after a while
    ├── Undecided           a message cannot be decided; it waits among the dead letters
    └── Foreign             an event newer than this code; this process must not decide here

A docstring is the default message. Expected failures of tasks are values (`outcome`), not exceptions.
"""

from __future__ import annotations


class NoetlError(Exception):
    """Something went wrong in NoETL."""

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class InvalidInput(NoetlError):
    """What was given cannot be used."""

    exit_code = 2


class InvalidPlaybook(InvalidInput):
    """The playbook has errors; `noetl validate` lists them."""


class InvalidPayload(InvalidInput):
    """The payload does not fit the playbook's workload schema."""


class UnknownExecution(InvalidInput):
    """There is no such execution in this store."""


class Conflict(NoetlError):
    """Somebody else changed this execution first."""


class BadReference(NoetlError):
    """A stored result is not there, or is not what was stored."""


class CredentialUnavailable(NoetlError):
    """A credential cannot be resolved now."""

    def __init__(self, message: str = "", *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class StoreUnavailable(NoetlError):
    """The store cannot be reached or written now."""


class Overloaded(StoreUnavailable):
    """More messages are under way than this server takes; try again."""

    retry_after_s = 1.0


class Unreachable(StoreUnavailable):
    """The server cannot be reached now."""


class Denied(NoetlError):
    """This is not allowed to whoever asks."""


class Undecided(NoetlError):
    """The server cannot decide this message; it waits among the dead letters."""


class Foreign(NoetlError):
    """This execution holds events that a newer version wrote."""
