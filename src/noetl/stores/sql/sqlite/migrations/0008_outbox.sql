-- Messages for other systems: written down first, delivered afterwards, at least once.

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
