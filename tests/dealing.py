"""Which tests go to one process of `make test` together; the others go one by one.

Tests that share a slow fixture go together, and begin first: dealt out, each process would make the fixture anew. The mark
`xdist_group` says the same, but pytest 9 ignores what xdist makes of it.
"""

from __future__ import annotations

from typing import Final

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

TOGETHER: Final = (
    "tests/acceptance/executions/test_exec_each.py",
    "tests/acceptance/test_mistakes.py",
    "tests/bench/test_run.py",
    "tests/cluster/",
    "tests/server/auth/test_oidc.py",
    "tests/ui/",
    "tests/unit/stores/postgres/test_outages.py",
    "tests/unit/worker/secrets/managers/test_aws.py",
    "tests/unit/worker/secrets/test_storage.py",
)


class Dealing(LoadScopeScheduling):  # type: ignore[misc]
    """Deal out single tests, and whole files or folders."""

    def _split_scope(self, nodeid: str) -> str:
        return next((place for place in TOGETHER if nodeid.startswith(place)), nodeid)
