-- Work that failed for good: it follows from the log, and is written with the events of the failure.

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
