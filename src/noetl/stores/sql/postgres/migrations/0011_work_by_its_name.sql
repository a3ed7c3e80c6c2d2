-- Work is found by its name alone, which begins with its execution: new work has two indexes less to go into.

ALTER TABLE queue DROP CONSTRAINT queue_pkey;
ALTER TABLE queue DROP CONSTRAINT queue_node_id_key;
ALTER TABLE queue ALTER COLUMN node_id TYPE text COLLATE "C";
ALTER TABLE queue ADD PRIMARY KEY (node_id);
DROP INDEX queue_execution;

CREATE OR REPLACE FUNCTION to_time(ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN to_timestamp(ms::double precision / 1000);

DROP FUNCTION refuse_batch;

CREATE FUNCTION refuse_batch() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'NL001', MESSAGE = 'a batch was decided on an older state';
END $$;

CREATE OR REPLACE FUNCTION claim_work(claims claim_row[])
RETURNS TABLE (claim integer, epoch bigint, attempt integer, node_id text, work json) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  asked record;
  takers text[]; -- of each piece of work
BEGIN
  FOR asked IN SELECT * FROM unnest(claims) WITH ORDINALITY LOOP
    CONTINUE WHEN none_queued(asked.pools);
    takers := ARRAY(
      SELECT w.name FROM unnest(asked.workers, asked.wanted) WITH ORDINALITY AS w (name, most, place),
        generate_series(1, w.most)
      ORDER BY w.place
    );
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
      SELECT found.node_id, found.priority, found.id FROM kind CROSS JOIN LATERAL (
        SELECT q.node_id, q.priority, q.id FROM queue AS q
        WHERE q.pool = kind.pool AND q.requires = kind.requires AND q.status = 'queued'
          AND (q.available_at IS NULL OR q.available_at <= to_time(asked.now))
        ORDER BY q.priority DESC, q.id LIMIT cardinality(takers) FOR UPDATE SKIP LOCKED
      ) AS found
      WHERE kind.requires <@ asked.tags
      ORDER BY found.priority DESC, found.id LIMIT cardinality(takers)
    ), placed AS MATERIALIZED (
      SELECT node_id, row_number() OVER (ORDER BY priority DESC, id) AS place FROM best
    ), numbered AS MATERIALIZED (
      SELECT node_id, place, nextval('lease_epoch') AS epoch FROM (SELECT * FROM placed ORDER BY place) AS sorted
    )
    UPDATE queue SET status = 'leased', epoch = numbered.epoch, attempts = attempts + 1,
      worker_id = takers[numbered.place], lease_until = to_time(asked.until), last_heartbeat = now(),
      updated_at = now()
    FROM numbered WHERE queue.node_id = numbered.node_id
    RETURNING asked.ordinality::integer, numbered.epoch, queue.attempts, queue.node_id, queue.context;
  END LOOP;
END $$;
