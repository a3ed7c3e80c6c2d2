-- Leased work is found by its number, which is minus its epoch, so a lease needs no index; the place in the order stays
-- apart. What tells a message that was applied is found by its beginning, which takes a quarter of the room.

DROP INDEX queue_leases;

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
  status TEXT NOT NULL CHECK (status IN ('queued', 'leased', 'dead')),
  epoch INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  worker_id TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  work TEXT NOT NULL
);

INSERT INTO queue (
  number, place, work_id, execution_id, run_id, chunk, pool, requires, priority, available_at, status, epoch, attempts,
  worker_id, lease_until, created_at, work
)
SELECT
  CASE WHEN status = 'leased' THEN -epoch ELSE number END, number, work_id, execution_id, run_id, chunk, pool, requires,
  priority, available_at, status, epoch, attempts, worker_id, lease_until, created_at, work
FROM old_queue;

DROP TABLE old_queue;

CREATE INDEX queue_order ON queue (pool, requires, priority DESC, place) WHERE status = 'queued' AND available_at = 0;

CREATE INDEX queue_later ON queue (available_at) WHERE status = 'queued' AND available_at > 0;

DROP INDEX event_log_message;

CREATE INDEX event_log_message ON event_log (substr(message, 1, 10));
