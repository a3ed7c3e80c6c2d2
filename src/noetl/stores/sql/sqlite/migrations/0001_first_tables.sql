-- The first tables.

CREATE TABLE event_log (
  execution_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  timestamp INTEGER NOT NULL,
  source TEXT NOT NULL,
  entity_type TEXT NOT NULL,
  entity_id TEXT NOT NULL,
  parent_id TEXT,
  step_run_id TEXT,
  task_run_id TEXT,
  iteration INTEGER,
  attempt INTEGER,
  status TEXT,
  duration_ms REAL,
  payload TEXT NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (execution_id, seq)
);

CREATE UNIQUE INDEX event_log_event ON event_log (execution_id, event_id);

CREATE TABLE execution (
  number INTEGER PRIMARY KEY,
  execution_id TEXT NOT NULL UNIQUE,
  last_seq INTEGER NOT NULL,
  status TEXT NOT NULL,
  projection TEXT NOT NULL
);

CREATE INDEX execution_status ON execution (status, number);

CREATE TABLE queue (
  number INTEGER PRIMARY KEY,
  work_id TEXT NOT NULL UNIQUE,
  execution_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  chunk TEXT,
  pool TEXT NOT NULL,
  priority INTEGER NOT NULL,
  available_at INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'dead')),
  epoch INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  work TEXT NOT NULL
);

CREATE INDEX queue_order ON queue (pool, priority DESC, number) WHERE state = 'queued';

CREATE INDEX queue_later ON queue (available_at) WHERE state = 'queued' AND available_at > 0;

CREATE INDEX queue_leases ON queue (lease_until) WHERE state = 'leased';

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
  PRIMARY KEY (path, version)
);

CREATE TABLE playbook (
  playbook TEXT PRIMARY KEY,
  canonical BLOB NOT NULL
);

CREATE TABLE result (
  ref TEXT PRIMARY KEY,
  data BLOB NOT NULL,
  meta TEXT NOT NULL
);

CREATE TABLE counter (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO counter (name, value) VALUES ('epoch', 0);
