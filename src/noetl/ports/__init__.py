"""Ports: the protocols between server, worker, stores and tools.

Adapters live in `stores`, `blobs`, `server` and `client`; only `wiring` names them. Times are milliseconds since the epoch
and always passed in.
"""

from noetl.model.commit import AuditEntry as AuditEntry
from noetl.model.commit import Commit as Commit
from noetl.ports.derived import DerivedRows as DerivedRows
from noetl.ports.derived import DerivedTables as DerivedTables
from noetl.ports.log import Catalog as Catalog
from noetl.ports.log import CivilClock as CivilClock
from noetl.ports.log import Claim as Claim
from noetl.ports.log import Clock as Clock
from noetl.ports.log import Committed as Committed
from noetl.ports.log import Doorbell as Doorbell
from noetl.ports.log import EventLog as EventLog
from noetl.ports.log import History as History
from noetl.ports.log import Position as Position
from noetl.ports.log import Receipt as Receipt
from noetl.ports.log import Selection as Selection
from noetl.ports.log import WorkQueue as WorkQueue
from noetl.ports.team import Audit as Audit
from noetl.ports.team import AuditTrail as AuditTrail
from noetl.ports.team import Credentials as Credentials
from noetl.ports.team import IdempotencyKeys as IdempotencyKeys
from noetl.ports.team import Runtime as Runtime
from noetl.ports.team import Token as Token
from noetl.ports.team import Tokens as Tokens
from noetl.ports.team import WorkerInfo as WorkerInfo
from noetl.ports.work import Blobs as Blobs
from noetl.ports.work import BlobStore as BlobStore
from noetl.ports.work import Children as Children
from noetl.ports.work import Confirm as Confirm
from noetl.ports.work import ControlPlane as ControlPlane
from noetl.ports.work import Ended as Ended
from noetl.ports.work import Job as Job
from noetl.ports.work import Runner as Runner
from noetl.ports.work import ToolContext as ToolContext
from noetl.ports.work import Tools as Tools
