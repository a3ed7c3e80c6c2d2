-- Events in one order over all executions; columns to choose executions by; work that asks for tags; withdrawn versions;
-- and what is kept for a team.

DROP INDEX event_log_event;

ALTER TABLE event_log RENAME TO old_event_log;

CREATE TABLE event_log (
  writer_seq INTEGER PRIMARY KEY,
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
  UNIQUE (execution_id, seq)
);

INSERT INTO event_log (
  execution_id, seq, event_id, event_type, timestamp, source, entity_type, entity_id, parent_id, step_run_id,
  task_run_id, iteration, attempt, status, duration_ms, payload, version
) SELECT
  execution_id, seq, event_id, event_type, timestamp, source, entity_type, entity_id, parent_id, step_run_id,
  task_run_id, iteration, attempt, status, duration_ms, payload, version
FROM old_event_log ORDER BY rowid;

DROP TABLE old_event_log;

CREATE UNIQUE INDEX event_log_event ON event_log (execution_id, event_id);

DROP INDEX execution_status;

ALTER TABLE execution RENAME TO old_execution;

CREATE TABLE execution (
  number INTEGER PRIMARY KEY,
  execution_id TEXT NOT NULL UNIQUE,
  last_seq INTEGER NOT NULL,
  status TEXT NOT NULL,
  path TEXT NOT NULL,
  parent_id TEXT,
  tags TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  projection TEXT NOT NULL
);

CREATE INDEX execution_status ON execution (status, number);

CREATE INDEX execution_path ON execution (path, number);

CREATE INDEX execution_parent ON execution (parent_id, number) WHERE parent_id IS NOT NULL;

INSERT INTO execution (number, execution_id, last_seq, status, path, parent_id, tags, started_at, projection)
SELECT
  number, execution_id, last_seq, status, coalesce(json_extract(projection, '$.path'), ''),
  json_extract(projection, '$.parent'), '[]', coalesce(json_extract(projection, '$.started_at'), 0), projection
FROM old_execution;

DROP TABLE old_execution;

DROP INDEX queue_order;

DROP INDEX queue_later;

DROP INDEX queue_leases;

ALTER TABLE queue RENAME TO old_queue;

CREATE TABLE queue (
  number INTEGER PRIMARY KEY,
  work_id TEXT NOT NULL UNIQUE,
  execution_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  chunk TEXT,
  pool TEXT NOT NULL,
  requires TEXT NOT NULL,
  priority INTEGER NOT NULL,
  available_at INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued', 'leased', 'dead')),
  epoch INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  worker_id TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  work TEXT NOT NULL
);

CREATE INDEX queue_order ON queue (pool, requires, priority DESC, number) WHERE status = 'queued' AND available_at = 0;

CREATE INDEX queue_later ON queue (available_at) WHERE status = 'queued' AND available_at > 0;

CREATE INDEX queue_leases ON queue (lease_until) WHERE status = 'leased';

INSERT INTO queue (
  number, work_id, execution_id, run_id, chunk, pool, requires, priority, available_at, status, epoch, attempts,
  worker_id, lease_until, created_at, work
) SELECT
  number, work_id, execution_id, run_id, chunk, pool, '', priority, available_at, state, epoch, attempt,
  worker, lease_until, 0, work
FROM old_queue;

DROP TABLE old_queue;

ALTER TABLE catalog RENAME TO old_catalog;

CREATE TABLE catalog (
  path TEXT NOT NULL,
  version INTEGER NOT NULL,
  playbook TEXT NOT NULL,
  content BLOB NOT NULL,
  registered_at INTEGER NOT NULL,
  withdrawn INTEGER NOT NULL,
  PRIMARY KEY (path, version)
);

INSERT INTO catalog (path, version, playbook, content, registered_at, withdrawn)
SELECT path, version, playbook, content, registered_at, 0 FROM old_catalog;

DROP TABLE old_catalog;

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
  last_heartbeat INTEGER NOT NULL
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
  pool TEXT
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
  detail TEXT NOT NULL
);
