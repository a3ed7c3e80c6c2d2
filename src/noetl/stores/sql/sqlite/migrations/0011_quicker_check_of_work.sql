-- A list of three values was made a table of its own for every row of work that was written, to look its status up in.

DROP INDEX queue_later;

DROP INDEX queue_order;

ALTER TABLE queue RENAME TO old_queue;

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
  work TEXT NOT NULL
);

INSERT INTO queue SELECT * FROM old_queue;

DROP TABLE old_queue;

CREATE INDEX queue_order ON queue (pool, requires, priority DESC, place) WHERE status = 'queued' AND available_at = 0;

CREATE INDEX queue_later ON queue (available_at) WHERE status = 'queued' AND available_at > 0;
