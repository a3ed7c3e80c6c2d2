DROP TABLE dlq;

-- Work that failed for good: it follows from the log, and is written with the events of the failure.

CREATE TABLE dlq (
  message_id text PRIMARY KEY,
  execution_id bigint NOT NULL,
  step_id text NOT NULL,
  run_id text NOT NULL,
  reason text NOT NULL,
  attempts integer NOT NULL,
  last_error text NOT NULL,
  fingerprint text NOT NULL,
  first_seen bigint NOT NULL,
  last_seen bigint NOT NULL,
  path text NOT NULL,
  loop_index bigint,
  loop_key text,
  task text NOT NULL,
  tool_kind text,
  sink_id text,
  replays integer NOT NULL,
  last_stack text NOT NULL,
  payload json NOT NULL,
  context_excerpt text NOT NULL,
  error json NOT NULL,
  status text NOT NULL CHECK (status IN ('pending', 'replaying', 'replayed', 'discarded')),
  closed_at bigint,
  closed_by text NOT NULL,
  note text NOT NULL
);

CREATE INDEX dlq_execution ON dlq (execution_id);
CREATE INDEX dlq_status ON dlq (status, last_seen, message_id);
CREATE INDEX dlq_fingerprint ON dlq (fingerprint, last_seen, message_id);
CREATE INDEX dlq_tool_kind ON dlq (tool_kind);
CREATE INDEX dlq_closed ON dlq (closed_at) WHERE closed_at IS NOT NULL;
