-- A batch is applied with fewer and simpler statements, and new work is born leased where nobody comes before it.

DROP FUNCTION commit_batch;
DROP FUNCTION claim_work;
DROP TYPE guard_row;
DROP TYPE lease_row;
DROP TYPE claim_row;
DROP TYPE execution_row;
DROP TYPE work_row;

ALTER TABLE writer SET (fillfactor = 50);

CREATE TYPE lease_row AS (node_id text, epoch bigint, goes boolean); -- without an epoch it goes, whoever has it
CREATE TYPE claim_row AS (workers text[], pools text[], tags text[], now bigint, until bigint);
CREATE TYPE execution_row AS (
  execution_id bigint, expected bigint, last_seq bigint, status text, path text, parent text, tags text[],
  started_at bigint, ended_at bigint, error text, projection json
);
CREATE TYPE work_row AS (
  node_id text, execution_id bigint, action text, pool text, priority integer, available_at bigint, requires text[],
  born bigint, context json, worker text, until bigint -- whom it is for, where nobody comes before it
);

-- Lease work to those who ask, the best work first: the first of `workers` gets the best, and so on. What work of a pool
-- requires is looked up by one seek for each kind, so work that nobody here can do costs nothing. Work that somebody else is
-- leasing is passed over.

CREATE FUNCTION claim_work(claims claim_row[])
RETURNS TABLE (claim integer, epoch bigint, attempt integer, node_id text, work json) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  asked record;
BEGIN
  FOR asked IN SELECT *, cardinality(workers) AS most FROM unnest(claims) WITH ORDINALITY LOOP
    CONTINUE WHEN none_queued(asked.pools);
    RETURN QUERY
    WITH RECURSIVE kind AS (
      SELECT one.pool, '{}'::text[] COLLATE "C" AS requires FROM unnest(asked.pools) AS one (pool)
      UNION ALL
      SELECT kind.pool, (
        SELECT q.requires FROM queue AS q
        WHERE q.pool = kind.pool AND q.status = 'queued' AND q.requires > kind.requires
        ORDER BY q.pool, q.requires LIMIT 1
      )
      FROM kind WHERE kind.requires IS NOT NULL AND cardinality(asked.tags) > 0
    ), best AS (
      SELECT found.id, found.priority FROM kind CROSS JOIN LATERAL (
        SELECT q.id, q.priority FROM queue AS q
        WHERE q.pool = kind.pool AND q.requires = kind.requires AND q.status = 'queued'
          AND (q.available_at IS NULL OR q.available_at <= to_time(asked.now))
        ORDER BY q.priority DESC, q.id LIMIT asked.most FOR UPDATE SKIP LOCKED
      ) AS found
      WHERE kind.requires <@ asked.tags
      ORDER BY found.priority DESC, found.id LIMIT asked.most
    ), placed AS MATERIALIZED (
      SELECT id, row_number() OVER (ORDER BY priority DESC, id) AS place FROM best
    ), numbered AS MATERIALIZED (
      SELECT id, place, nextval('lease_epoch') AS epoch FROM (SELECT * FROM placed ORDER BY place) AS sorted
    )
    UPDATE queue SET status = 'leased', epoch = numbered.epoch, attempts = attempts + 1,
      worker_id = asked.workers[numbered.place], lease_until = to_time(asked.until), last_heartbeat = now(),
      updated_at = now()
    FROM numbered WHERE queue.id = numbered.id
    RETURNING asked.ordinality::integer, numbered.epoch, queue.attempts, queue.node_id, queue.context;
  END LOOP;
END $$;

-- Tell whether nothing waits in these pools, also not for later.

CREATE FUNCTION none_queued(pools text[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  one text;
BEGIN
  FOREACH one IN ARRAY pools LOOP
    PERFORM FROM queue WHERE status = 'queued' AND pool = one LIMIT 1;
    IF FOUND THEN
      RETURN false;
    END IF;
  END LOOP;
  RETURN true;
END $$;

-- Raise where a batch was judged on facts that are not true: nothing of it is changed then.

CREATE FUNCTION refuse_batch() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'NL001', MESSAGE = 'a batch was decided on an older state';
END $$;

-- Apply a batch and serve claims, if the facts are what the batch was judged by; else raise NL001 and change nothing.
-- Rows are locked in one order by everybody: the writer, executions by id, work by its name; so the arrays are sorted.
-- Work that is meant for a worker is born leased to it, where nothing waits in the pools of those who ask, which are
-- `pools`; else all who ask are served from the queue.

CREATE FUNCTION commit_batch(
  writer bigint, executions execution_row[], leases lease_row[], consumed text[], events event_row[], works work_row[],
  pools text[], claims claim_row[], cleared timer_row[], timers timer_row[], messages message_row[]
) RETURNS TABLE (claim integer, epoch bigint, attempt integer, node_id text, work json) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  base bigint;
  row execution_row;
  held lease_row;
  good bigint;
BEGIN
  UPDATE writer SET last_seq = last_seq + cardinality(events), commits = commits + 1
  WHERE writer_id = commit_batch.writer RETURNING last_seq - cardinality(events) INTO base;
  IF base IS NULL THEN
    INSERT INTO writer (writer_id, last_seq, commits) VALUES (commit_batch.writer, cardinality(events), 1);
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

  IF cardinality(events) > 0 THEN
    INSERT INTO event_log (
      execution_id, seq, event_id, event_type, timestamp, source, entity_type, entity_id, parent_id, step_run_id,
      task_run_id, iteration, attempt, status, duration_ms, payload, version, writer_id, writer_seq
    )
    SELECT x.execution_id, x.seq, x.event_id, x.event_type, x.timestamp, x.source, x.entity_type, x.entity_id,
      x.parent_id, x.step_run_id, x.task_run_id, x.iteration, x.attempt, x.status, x.duration_ms, x.payload, x.version,
      commit_batch.writer, base + x.ordinality
    FROM unnest(events) WITH ORDINALITY AS x;
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
