-- The events of a commit are one row, an execution's row is written only when it changes, and epochs are taken in blocks.

DROP INDEX event_log_message;

ALTER TABLE event_log RENAME TO old_event_log;

CREATE TABLE event_log (
  writer_seq INTEGER PRIMARY KEY,
  execution_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  size INTEGER NOT NULL,
  message TEXT,
  events TEXT NOT NULL,
  UNIQUE (execution_id, seq)
);

INSERT INTO event_log (writer_seq, execution_id, seq, size, message, events)
SELECT
  writer_seq, execution_id, seq, 1, CASE WHEN substr(event_id, -2) = '.0' THEN event_id END,
  json_array(
    json_array(
      event_id, execution_id, seq, event_type, timestamp, source, entity_type, entity_id, parent_id, step_run_id,
      task_run_id, iteration, attempt, status, duration_ms, json(payload), version
    )
  )
FROM old_event_log ORDER BY writer_seq;

DROP TABLE old_event_log;

CREATE UNIQUE INDEX event_log_message ON event_log (execution_id, message);

ALTER TABLE execution DROP COLUMN last_seq;

UPDATE execution SET projection = json_remove(projection, '$.seq');

ALTER TABLE counter RENAME TO old_counter;

CREATE TABLE counter (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL,
  holder TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;

INSERT INTO counter (name, value) SELECT name, value FROM old_counter;

DROP TABLE old_counter;
