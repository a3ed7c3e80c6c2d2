-- Tables of the SQLite store. Times are milliseconds since the epoch.

-- Applied migrations, with the hash of the text that was applied.
CREATE TABLE migration (
  level INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  hash TEXT NOT NULL
);

-- The events of one commit. `seq` and `writer_seq` belong to the last event; the others count down from there.
CREATE TABLE event_log (
  writer_seq INTEGER PRIMARY KEY,
  execution_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  size INTEGER NOT NULL,
  message TEXT,
  events TEXT NOT NULL,
  UNIQUE (execution_id, seq)
);

-- Finds applied messages: ten hexadecimal digits of the id are selective enough.
CREATE INDEX event_log_message ON event_log (substr(message, 1, 10));

CREATE TABLE execution (
  number INTEGER PRIMARY KEY,
  execution_id TEXT NOT NULL UNIQUE,
  status TEXT NOT NULL,
  path TEXT NOT NULL,
  parent_id TEXT,
  tags TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  projection TEXT NOT NULL,
  slot TEXT,
  queued INTEGER NOT NULL DEFAULT 0,
  above TEXT -- key of a limit of the server that it counts for too
);

CREATE INDEX execution_slot ON execution (slot, queued, number) WHERE slot IS NOT NULL;

CREATE INDEX execution_above ON execution (above, queued, number) WHERE above IS NOT NULL;

-- When the next execution of a rate may begin, in microseconds.
CREATE TABLE rate (
  key TEXT PRIMARY KEY,
  turn INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX rate_turn ON rate (turn);

CREATE INDEX execution_status ON execution (status, number);

CREATE INDEX execution_path ON execution (path, number);

CREATE INDEX execution_parent ON execution (parent_id, number) WHERE parent_id IS NOT NULL;

-- The number of leased work is minus its epoch, so that leased rows are adjacent; `rank` and then `place`, the age, order the
-- queue: a flow's next rank lies behind its last one and not before the first of its pool, so that flows take turns. For
-- `status IN (...)` SQLite would build a table of the list for every row.
CREATE TABLE queue (
  number INTEGER PRIMARY KEY,
  place INTEGER NOT NULL,
  work_id TEXT NOT NULL UNIQUE,
  execution_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  chunk TEXT,
  pool TEXT NOT NULL,
  requires TEXT NOT NULL,
  priority INTEGER NOT NULL,
  available_at INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status = 'queued' OR status = 'leased' OR status = 'dead'),
  epoch INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  worker_id TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  work TEXT NOT NULL,
  flow TEXT NOT NULL,
  rank INTEGER NOT NULL,
  limits TEXT NOT NULL -- of the server, that it counts for: a list, or empty
);

CREATE INDEX queue_order ON queue (pool, requires, limits, priority DESC, rank, place)
WHERE status = 'queued' AND available_at = 0;

CREATE INDEX queue_limits ON queue (limits, status) WHERE limits <> '';

CREATE INDEX queue_rank ON queue (pool, priority, rank) WHERE status = 'queued';

CREATE INDEX queue_flow ON queue (priority, flow, rank) WHERE status = 'queued';

CREATE INDEX queue_later ON queue (available_at) WHERE status = 'queued' AND available_at > 0;

CREATE TABLE timer (
  execution_id TEXT NOT NULL,
  timer_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (execution_id, timer_id)
) WITHOUT ROWID;

CREATE INDEX timer_at ON timer (at);

CREATE TABLE message (
  number INTEGER PRIMARY KEY,
  message_id TEXT NOT NULL UNIQUE,
  execution_id TEXT NOT NULL,
  message TEXT NOT NULL
);

CREATE TABLE snapshot (
  execution_id TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  version INTEGER NOT NULL,
  state BLOB NOT NULL
);

CREATE TABLE catalog (
  path TEXT NOT NULL,
  version INTEGER NOT NULL,
  playbook TEXT NOT NULL,
  content BLOB NOT NULL,
  registered_at INTEGER NOT NULL,
  withdrawn INTEGER NOT NULL,
  PRIMARY KEY (path, version)
);

CREATE TABLE playbook (
  playbook TEXT PRIMARY KEY,
  canonical BLOB NOT NULL
);

CREATE TABLE result (
  ref TEXT PRIMARY KEY,
  meta TEXT NOT NULL,
  data BLOB NOT NULL -- the last column, so that it is written and skipped without loading it
);

CREATE TABLE writer (
  writer_id TEXT PRIMARY KEY
);

CREATE TABLE runtime (
  worker_id TEXT PRIMARY KEY,
  pool TEXT NOT NULL,
  tags TEXT NOT NULL,
  capacity INTEGER NOT NULL,
  active INTEGER NOT NULL,
  status TEXT NOT NULL,
  host TEXT NOT NULL,
  version TEXT NOT NULL,
  registered_at INTEGER NOT NULL,
  last_heartbeat INTEGER NOT NULL,
  credentials TEXT
);

CREATE TABLE token (
  token_id TEXT PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  used_at INTEGER,
  pool TEXT,
  namespaces TEXT NOT NULL DEFAULT '[]' -- JSON array; empty: everywhere
);

CREATE TABLE credential (
  name TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  sealed BLOB NOT NULL,
  about TEXT NOT NULL,
  version INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
);

CREATE TABLE audit (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  entity TEXT NOT NULL,
  detail TEXT NOT NULL,
  before TEXT NOT NULL,
  after TEXT NOT NULL,
  digest TEXT NOT NULL, -- hash of all of the above but the number
  position INTEGER UNIQUE, -- place in the hash chain
  previous TEXT,
  hash TEXT
);

CREATE TABLE counter (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL,
  holder TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;

INSERT INTO counter (name, value) VALUES ('epoch', 0);

-- One row that is written to see whether the store takes a write.
CREATE TABLE probe (
  number INTEGER PRIMARY KEY,
  data BLOB NOT NULL
);

-- Idempotency keys: the execution of a request, stored before it starts.

CREATE TABLE request_key (
  key TEXT PRIMARY KEY,
  execution_id TEXT NOT NULL,
  at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX request_key_at ON request_key (at);
CREATE INDEX request_key_execution ON request_key (execution_id);

-- Duties that one of several processes has until a time.

CREATE TABLE duty (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  until INTEGER NOT NULL
) WITHOUT ROWID;

-- Transactional outbox: messages to other systems, delivered at least once.

CREATE TABLE outbox (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  topic TEXT NOT NULL,
  target TEXT NOT NULL,
  address TEXT NOT NULL,
  payload TEXT NOT NULL,
  headers TEXT NOT NULL,
  auth TEXT NOT NULL,
  execution_id TEXT NOT NULL,
  state TEXT NOT NULL DEFAULT 'pending', -- pending, delivered, dead, discarded
  attempts INTEGER NOT NULL DEFAULT 0,
  available_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  delivered_at INTEGER,
  error TEXT NOT NULL DEFAULT ''
);

CREATE INDEX outbox_due ON outbox (available_at, number) WHERE state = 'pending';
CREATE INDEX outbox_dead ON outbox (number) WHERE state = 'dead';

-- Schedules of playbooks, and their firings. A firing is recorded in the transaction that moves its schedule on.

CREATE TABLE schedule (
  schedule_id TEXT PRIMARY KEY,
  path TEXT NOT NULL,
  version INTEGER,
  owner TEXT NOT NULL,
  spec TEXT NOT NULL,
  paused INTEGER NOT NULL,
  next_at INTEGER,
  start_at INTEGER,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  revision INTEGER NOT NULL DEFAULT 1
);

CREATE INDEX schedule_due ON schedule (start_at) WHERE NOT paused;

CREATE TABLE firing (
  schedule_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('due', 'queued', 'started', 'ended', 'skipped', 'refused')),
  execution_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL,
  last_at INTEGER NOT NULL,
  count INTEGER NOT NULL,
  is_more INTEGER NOT NULL,
  decided_at INTEGER NOT NULL,
  PRIMARY KEY (schedule_id, at)
) WITHOUT ROWID;

CREATE INDEX firing_state ON firing (state, schedule_id, at);

-- Dead letters: derived from the log, and written with the events of the failure.

CREATE TABLE dlq (
  message_id TEXT PRIMARY KEY,
  execution_id TEXT NOT NULL,
  step_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  last_error TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  first_seen INTEGER NOT NULL,
  last_seen INTEGER NOT NULL,
  path TEXT NOT NULL,
  loop_index INTEGER,
  loop_key TEXT,
  task TEXT NOT NULL,
  tool_kind TEXT,
  sink_id TEXT,
  replays INTEGER NOT NULL,
  last_stack TEXT NOT NULL,
  payload TEXT NOT NULL,
  context_excerpt TEXT NOT NULL,
  error TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'replaying', 'replayed', 'discarded')),
  closed_at INTEGER,
  closed_by TEXT NOT NULL,
  note TEXT NOT NULL
);

CREATE INDEX dlq_execution ON dlq (execution_id);

CREATE INDEX dlq_status ON dlq (status, last_seen, message_id);

CREATE INDEX dlq_fingerprint ON dlq (fingerprint, last_seen, message_id);

CREATE INDEX dlq_tool_kind ON dlq (tool_kind);

CREATE INDEX dlq_closed ON dlq (closed_at) WHERE closed_at IS NOT NULL;

-- Access tokens of keychains, encrypted: one worker fetches a token, all use it.

CREATE TABLE access_token (
  key TEXT PRIMARY KEY,
  sealed BLOB,
  expires_at INTEGER NOT NULL,
  version INTEGER NOT NULL,
  holder TEXT,
  held_until INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX access_token_expires_at ON access_token (expires_at);

-- Triggers other than schedules.

CREATE TABLE playbook_trigger (
  kind TEXT NOT NULL,
  trigger_id TEXT NOT NULL,
  path TEXT NOT NULL,
  spec TEXT NOT NULL,
  version INTEGER,
  owner TEXT NOT NULL,
  paused INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  created_by TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  revision INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (kind, trigger_id)
) WITHOUT ROWID;

CREATE INDEX playbook_trigger_owner ON playbook_trigger (owner);

-- End of the hash chain of the audit trail, kept apart, so that a deleted end is noticed.

CREATE TABLE audit_head (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  position INTEGER NOT NULL,
  hash TEXT NOT NULL
) WITHOUT ROWID;

-- Users, their groups and the sessions of their browsers. A session is known by the hash of its secret.

CREATE TABLE person (
  name TEXT PRIMARY KEY,
  disabled INTEGER NOT NULL,
  data TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE person_group (
  name TEXT PRIMARY KEY,
  data TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE person_session (
  digest TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX person_session_name ON person_session (name);

-- How far readers of the feed got: position by writer.

CREATE TABLE feed_position (
  name TEXT NOT NULL PRIMARY KEY,
  position TEXT NOT NULL,
  revision INTEGER NOT NULL
) WITHOUT ROWID;

-- Keys that seal credentials, wrapped by a master key that no store has.

CREATE TABLE data_key (
  key_id TEXT PRIMARY KEY,
  wrapped BLOB NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;

-- How far subscriptions got in their sources, and the messages that they remember.

CREATE TABLE subscription_state (
  state_id TEXT NOT NULL PRIMARY KEY,
  position TEXT NOT NULL,
  revision INTEGER NOT NULL,
  received INTEGER NOT NULL,
  poisoned INTEGER NOT NULL,
  last_message TEXT NOT NULL,
  last_at INTEGER NOT NULL,
  status TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE subscription_message (
  state_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (state_id, message_id)
) WITHOUT ROWID;
