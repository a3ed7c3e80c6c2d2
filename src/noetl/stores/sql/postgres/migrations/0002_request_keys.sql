-- Requests that may be sent twice: the execution that a key stands for, written down before it starts.

CREATE TABLE request_key (
  key text PRIMARY KEY,
  execution_id bigint NOT NULL,
  at bigint NOT NULL
);

CREATE INDEX request_key_at ON request_key (at);
CREATE INDEX request_key_execution ON request_key (execution_id);
