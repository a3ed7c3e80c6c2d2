-- The events of a commit are one row, and `event_log` shows them one by one. Leases are found by their time only: an index of
-- all of them was sometimes taken for the way to one.

DROP VIEW workload;
DROP FUNCTION commit_batch;
DROP TYPE event_row;

ALTER TABLE event_log RENAME TO old_log;

DO $$
DECLARE
  name text;
BEGIN
  FOR name IN SELECT c.relname FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'old_log'::regclass
  LOOP
    EXECUTE format('ALTER TABLE %I RENAME TO %I', name, 'old_' || name);
  END LOOP;
END $$;

CREATE TABLE log (
  execution_id bigint NOT NULL,
  seq bigint NOT NULL, -- of the last of the events
  writer_id bigint NOT NULL,
  writer_seq bigint NOT NULL, -- of the last of them
  size integer NOT NULL,
  message text, -- the id of the first of them, which tells whether a message was applied
  events text NOT NULL, -- what is read is what was written
  PRIMARY KEY (execution_id, seq)
) PARTITION BY RANGE (execution_id);

CREATE UNIQUE INDEX log_message ON log (execution_id, message);
CREATE INDEX log_writer ON log (writer_id, writer_seq);

CREATE TABLE event_log_rest PARTITION OF log DEFAULT WITH (toast_tuple_target = 4080);

-- The events of a row, to be looked into. A NUL, which no text of PostgreSQL can hold, is shown as U+FFFD; where a backslash
-- is itself escaped, none is meant.

CREATE FUNCTION to_json_events(events text) RETURNS json LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN strpos(events, '\u0000') = 0 THEN events
  ELSE regexp_replace(events, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')
END::json;

-- The same, one row for each event.

CREATE VIEW event_log AS
SELECT l.execution_id, l.seq - l.size + e.place AS seq, e.event ->> 0 AS event_id, e.event ->> 1 AS event_type,
  (e.event ->> 2)::bigint AS timestamp, e.event ->> 3 AS source, e.event ->> 4 AS entity_type, e.event ->> 5 AS entity_id,
  e.event ->> 6 AS parent_id, e.event ->> 7 AS step_run_id, e.event ->> 8 AS task_run_id,
  (e.event ->> 9)::bigint AS iteration, (e.event ->> 10)::integer AS attempt, e.event ->> 11 AS status,
  (e.event ->> 12)::double precision AS duration_ms, e.event -> 13 AS payload, (e.event ->> 14)::integer AS version,
  l.writer_id, l.writer_seq - l.size + e.place AS writer_seq
FROM log AS l
CROSS JOIN LATERAL json_array_elements(to_json_events(l.events)) WITH ORDINALITY AS e (event, place);

-- Months stay months. An event of before is a row of its own.

DO $$
DECLARE
  name text;
  bounds text;
BEGIN
  FOR name, bounds IN SELECT substr(c.relname, 5), pg_get_expr(c.relpartbound, c.oid)
    FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'old_log'::regclass AND c.relname <> 'old_event_log_rest'
  LOOP
    EXECUTE format('CREATE TABLE %I PARTITION OF log %s WITH (toast_tuple_target = 4080)', name, bounds);
  END LOOP;
END $$;

INSERT INTO log (execution_id, seq, writer_id, writer_seq, size, message, events)
SELECT execution_id, seq, writer_id, writer_seq, 1, CASE WHEN event_id LIKE '%.0' THEN event_id END,
  json_build_array(
    json_build_array(
      event_id, event_type, timestamp, source, entity_type, entity_id, parent_id, step_run_id, task_run_id, iteration,
      attempt, status, duration_ms, payload, version
    )
  )::text
FROM old_log;

DROP TABLE old_log;

CREATE VIEW workload AS
SELECT l.execution_id, to_timestamp((e.event ->> 2)::bigint / 1000.0) AS timestamp, e.event -> 13 -> 'workload' AS data
FROM log AS l CROSS JOIN LATERAL json_array_elements(to_json_events(l.events)) AS e (event)
WHERE l.seq - l.size < 8 AND e.event ->> 1 = 'playbook.request.evaluated';

DROP INDEX queue_leases;
CREATE INDEX queue_leases ON queue (lease_until) WHERE lease_until IS NOT NULL; -- found by its time only, never whole

CREATE TYPE log_row AS (
  execution_id bigint, seq bigint, size integer, message text, events text, place integer -- of its last event in the batch
);

CREATE FUNCTION commit_batch(
  writer bigint, executions execution_row[], leases lease_row[], consumed text[], logs log_row[], works work_row[],
  pools text[], claims claim_row[], cleared timer_row[], timers timer_row[], messages message_row[]
) RETURNS TABLE (claim integer, epoch bigint, attempt integer, node_id text, work json) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  happened integer := coalesce(logs[cardinality(logs)].place, 0);
  base bigint;
  row execution_row;
  held lease_row;
  good bigint;
BEGIN
  UPDATE writer SET last_seq = last_seq + happened, commits = commits + 1
  WHERE writer_id = commit_batch.writer RETURNING last_seq - happened INTO base;
  IF base IS NULL THEN
    INSERT INTO writer (writer_id, last_seq, commits) VALUES (commit_batch.writer, happened, 1);
    base := 0;
  END IF;

  FOREACH row IN ARRAY executions LOOP
    IF row.expected = 0 AND row.last_seq > 0 THEN
      INSERT INTO execution (
        execution_id, last_seq, status, path, parent, tags, started_at, ended_at, error, projection
      )
      VALUES (
        row.execution_id, row.last_seq, coalesce(row.status, 'pending'), coalesce(row.path, ''), row.parent,
        coalesce(row.tags, '{}'), coalesce(row.started_at, 0), row.ended_at, row.error, coalesce(row.projection, '{}')
      );
    ELSIF row.expected = 0 THEN
      PERFORM FROM execution WHERE execution_id = row.execution_id;
      IF FOUND THEN
        PERFORM refuse_batch();
      END IF;
    ELSE
      IF row.projection IS NOT NULL THEN
        UPDATE execution SET last_seq = row.last_seq, status = row.status, path = row.path, parent = row.parent,
          tags = row.tags, started_at = row.started_at, ended_at = row.ended_at, error = row.error,
          projection = row.projection
        WHERE execution_id = row.execution_id AND last_seq = row.expected;
      ELSIF row.last_seq <> row.expected THEN
        UPDATE execution SET last_seq = row.last_seq
        WHERE execution_id = row.execution_id AND last_seq = row.expected;
      ELSE
        PERFORM FROM execution WHERE execution_id = row.execution_id AND last_seq = row.expected FOR NO KEY UPDATE;
      END IF;
      IF NOT FOUND THEN
        PERFORM refuse_batch();
      END IF;
    END IF;
  END LOOP;

  FOREACH held IN ARRAY leases LOOP
    IF held.epoch IS NULL THEN
      DELETE FROM queue WHERE node_id = held.node_id;
    ELSE
      IF held.goes THEN
        DELETE FROM queue WHERE node_id = held.node_id AND status = 'leased' AND epoch = held.epoch;
      ELSE
        PERFORM FROM queue WHERE node_id = held.node_id AND status = 'leased' AND epoch = held.epoch FOR UPDATE;
      END IF;
      IF NOT FOUND THEN
        PERFORM refuse_batch();
      END IF;
    END IF;
  END LOOP;

  IF cardinality(consumed) > 0 THEN
    DELETE FROM message WHERE message_id = ANY (consumed);
    GET DIAGNOSTICS good = ROW_COUNT;
    IF good <> cardinality(consumed) THEN
      PERFORM refuse_batch();
    END IF;
  END IF;

  IF happened > 0 THEN
    INSERT INTO log (execution_id, seq, writer_id, writer_seq, size, message, events)
    SELECT x.execution_id, x.seq, commit_batch.writer, base + x.place, x.size, x.message, x.events FROM unnest(logs) AS x;
  END IF;

  IF cardinality(cleared) > 0 THEN
    DELETE FROM timer AS t USING unnest(cleared) AS x
    WHERE t.execution_id = x.execution_id AND t.timer_id = x.timer_id;
  END IF;
  IF cardinality(timers) > 0 THEN
    INSERT INTO timer (execution_id, timer_id, at) SELECT x.execution_id, x.timer_id, x.at FROM unnest(timers) AS x
    ON CONFLICT (execution_id, timer_id) DO UPDATE SET at = excluded.at;
  END IF;
  IF cardinality(messages) > 0 THEN
    INSERT INTO message (message_id, execution_id, message)
    SELECT x.message_id, x.execution_id, x.message FROM unnest(messages) WITH ORDINALITY AS x ORDER BY x.ordinality
    ON CONFLICT (message_id) DO NOTHING;
  END IF;

  IF cardinality(pools) > 0 AND none_queued(pools) THEN
    RETURN QUERY
    INSERT INTO queue (
      node_id, execution_id, action, pool, priority, available_at, requires, created_at, context, worker_id, lease_until,
      status, epoch, attempts, last_heartbeat
    )
    SELECT x.node_id, x.execution_id, x.action, x.pool, x.priority, to_time(nullif(x.available_at, 0)), x.requires,
      to_time(x.born), x.context, x.worker, to_time(x.until), CASE WHEN x.worker IS NULL THEN 'queued' ELSE 'leased' END,
      CASE WHEN x.worker IS NULL THEN 0 ELSE nextval('lease_epoch') END, CASE WHEN x.worker IS NULL THEN 0 ELSE 1 END,
      CASE WHEN x.worker IS NULL THEN NULL ELSE now() END
    FROM unnest(works) AS x
    RETURNING 0, epoch, attempts, node_id, NULL::json;
    RETURN;
  END IF;
  IF cardinality(works) > 0 THEN
    INSERT INTO queue (node_id, execution_id, action, pool, priority, available_at, requires, created_at, context)
    SELECT x.node_id, x.execution_id, x.action, x.pool, x.priority, to_time(nullif(x.available_at, 0)), x.requires,
      to_time(x.born), x.context
    FROM unnest(works) WITH ORDINALITY AS x ORDER BY x.ordinality
    ON CONFLICT (node_id) DO UPDATE SET pool = excluded.pool, priority = excluded.priority,
      available_at = excluded.available_at, requires = excluded.requires, context = excluded.context,
      updated_at = now();
  END IF;
  IF cardinality(claims) > 0 THEN
    RETURN QUERY SELECT * FROM claim_work(claims);
  END IF;
END $$;

CREATE OR REPLACE FUNCTION make_partitions(months integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  month timestamp;
  first bigint;
  after bigint;
  made integer := 0;
BEGIN
  FOR number IN 0..months LOOP
    month := date_trunc('month', now() AT TIME ZONE 'UTC') + number * interval '1 month';
    IF to_regclass('event_log_' || to_char(month, 'YYYY_MM')) IS NOT NULL THEN
      CONTINUE;
    END IF;
    PERFORM pg_advisory_xact_lock(7086823700);
    first := (to_ms(month AT TIME ZONE 'UTC') - 1704067200000) << 22;
    after := (to_ms((month + interval '1 month') AT TIME ZONE 'UTC') - 1704067200000) << 22;
    IF to_regclass('event_log_' || to_char(month, 'YYYY_MM')) IS NULL
      AND NOT EXISTS (SELECT FROM event_log_rest WHERE execution_id >= first AND execution_id < after) THEN
      EXECUTE format(
        'CREATE TABLE %I PARTITION OF log FOR VALUES FROM (%s) TO (%s) WITH (toast_tuple_target = 4080)',
        'event_log_' || to_char(month, 'YYYY_MM'), first, after
      );
      made := made + 1;
    END IF;
  END LOOP;
  RETURN made;
END $$;
