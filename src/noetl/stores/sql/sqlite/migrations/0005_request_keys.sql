-- Requests that may be sent twice: the execution that a key stands for, written down before it starts.

CREATE TABLE request_key (
  key TEXT PRIMARY KEY,
  execution_id TEXT NOT NULL,
  at INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX request_key_at ON request_key (at);
CREATE INDEX request_key_execution ON request_key (execution_id);
