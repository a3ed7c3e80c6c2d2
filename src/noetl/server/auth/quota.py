"""Bounded resource of which one API token can take only a share.

Callers without a token have no share of their own: the bound of all is theirs. Tested in tests/server/http/test_readers.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from noetl.server.auth.gate import Actor
from noetl.server.problems import Refusal

_RETRY_S = 5.0


class Quota:
    """A number of things, or of bytes, in use at once: in all, and by each token."""

    def __init__(self, most: int, share: int, what: str) -> None:
        self._most = most
        self._share = share
        self._what = what
        self._used = 0
        self._by_token: Counter[str] = Counter()

    @property
    def used(self) -> int:
        """How much is in use, by all."""
        return self._used

    def take(self, actor: Actor, amount: int = 1) -> Callable[[], None]:
        """Take an amount; return what gives it back, once. Raises Refusal.

        A single holder may take more than the bound, so that nothing is too large to be had at all.
        """
        token = actor.token_id
        if token and self._by_token[token] and self._by_token[token] + amount > self._share:
            detail = f"Too many {self._what} of this token are open."
            raise Refusal(429, "too-many", detail, fix="Close some, or try again later.", retry_after_s=_RETRY_S)
        if self._used and self._used + amount > self._most:
            detail = f"Too many {self._what} are open."
            raise Refusal(503, "busy", detail, fix="Try again later.", retry_after_s=_RETRY_S)
        return self.count(actor, amount)

    def count(self, actor: Actor, amount: int) -> Callable[[], None]:
        """Take an amount that cannot be refused any more; return what gives it back."""
        token = actor.token_id
        self._used += amount
        if token:
            self._by_token[token] += amount
        return lambda: self._give_back(token, amount)

    def _give_back(self, token: str | None, amount: int) -> None:
        self._used -= amount
        if token:
            self._by_token[token] -= amount
            if not self._by_token[token]:
                del self._by_token[token]
