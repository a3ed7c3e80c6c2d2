-- Every statement of the PostgreSQL store, by name. Times are parameters, in milliseconds since the epoch.

-- name: commit_batch
SELECT claim, epoch, attempt, node_id, work
FROM commit_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14);

-- name: lock_executions
SELECT execution_id, last_seq FROM execution WHERE execution_id = ANY ($1::bigint[])
ORDER BY execution_id FOR NO KEY UPDATE;

-- name: lock_work
SELECT node_id, status, epoch FROM queue WHERE node_id = ANY ($1::text[]) ORDER BY node_id FOR UPDATE;

-- name: lock_messages
SELECT message_id FROM message WHERE message_id = ANY ($1::text[]) ORDER BY message_id FOR UPDATE;

-- name: find_events
SELECT l.execution_id, l.message FROM unnest($1::bigint[], $2::text[]) AS x (execution_id, event_id)
JOIN log AS l ON l.execution_id = x.execution_id AND l.message = x.event_id;

-- name: lock_limits
-- Transactions that begin executions with the same key or rate take turns. Sorted, so that they do not deadlock.
SELECT pg_advisory_xact_lock(hashtextextended('limit ' || key, 0)) FROM (
  SELECT DISTINCT key FROM unnest($1::text[]) AS given (key) ORDER BY key
) AS sorted;

-- name: holders
SELECT execution_id::text, slot, above FROM execution
WHERE (slot = ANY ($1::text[]) OR above = ANY ($1::text[])) AND NOT queued ORDER BY number;

-- name: queued_keys
WITH RECURSIVE known AS (
  SELECT min(slot) AS slot FROM execution WHERE slot IS NOT NULL
  UNION ALL
  SELECT (SELECT min(x.slot) FROM execution AS x WHERE x.slot > known.slot) FROM known WHERE known.slot IS NOT NULL
)
SELECT slot FROM known
WHERE slot IS NOT NULL AND EXISTS (SELECT FROM execution AS x WHERE x.slot = known.slot AND x.queued);

-- name: waited_keys
SELECT key FROM unnest($1::text[]) AS key
WHERE EXISTS (SELECT FROM execution WHERE slot = key AND queued AND status <> 'paused');

-- name: queued_of
SELECT execution_id::text, last_seq, projection FROM execution WHERE slot = $1 AND queued ORDER BY number LIMIT $2;

-- name: turns_of
SELECT key, turn FROM rate WHERE key = ANY ($1::text[]);

-- name: put_rates
INSERT INTO rate (key, turn) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (key) DO UPDATE SET turn = excluded.turn;

-- name: forget_rates
DELETE FROM rate WHERE turn < $1;

-- name: new_writer
INSERT INTO writer (writer_id) VALUES (nextval('writer_number')) RETURNING writer_id;

-- name: note_change
UPDATE writer SET commits = commits + 1 WHERE writer_id = $1;

-- name: put_probe
INSERT INTO probe (number, written_at) VALUES (1, now()) ON CONFLICT (number) DO UPDATE SET written_at = now();

-- name: foreign_commits
-- Also returns the database's clock.
SELECT coalesce(sum(commits), 0)::bigint, to_ms(clock_timestamp()) FROM writer WHERE writer_id <> $1;

-- name: read_events
-- Numbers have no gaps, so a page is a range of numbers up to the row that holds its last event: few rows, whatever the
-- planner knows about the table.
SELECT seq, size, events FROM log WHERE execution_id = $1 AND seq > $2 AND seq <= coalesce(
  (SELECT min(seq) FROM log WHERE execution_id = $1 AND seq >= $2 + $3::bigint), 9223372036854775807
) ORDER BY seq;

-- name: find_execution
SELECT execution_id::text, last_seq, projection FROM execution WHERE execution_id = $1;

-- name: list_executions
-- Conditions are added behind the first one. A condition that accepts everything would prevent the use of an index.
SELECT execution_id::text, last_seq, projection FROM execution WHERE number > 0 ORDER BY number DESC LIMIT $1;

-- name: place_of
SELECT number FROM execution WHERE execution_id = $1;

-- name: list_timings
SELECT execution_id::text, path, status, started_at, ended_at FROM execution WHERE number > 0 ORDER BY number DESC LIMIT $1;

-- name: plan_for_values
-- The plan of a list depends on its values: a rare status is read from its index, a frequent one from the newest on.
SET LOCAL plan_cache_mode = force_custom_plan;

-- name: count_tagged
SELECT count(*) FROM (SELECT FROM execution WHERE tags @> ARRAY[$1::text] LIMIT $2) AS t;

-- name: open_counts
SELECT count(*) FROM (
  SELECT FROM execution
  WHERE status = $1 AND ($3::text[] IS NULL OR EXISTS (SELECT FROM unnest($3::text[]) AS n (name) WHERE starts_with(path, n.name)))
  LIMIT $2
) AS found;

-- name: recent_counts
-- The newest executions have the largest numbers.
SELECT ((started_at - $2) / $3)::bigint AS bucket, status, count(*) FROM (
  SELECT status, started_at, path FROM execution ORDER BY number DESC LIMIT $1
) AS newest
WHERE started_at >= $2
AND ($4::text[] IS NULL OR EXISTS (SELECT FROM unnest($4::text[]) AS n (name) WHERE starts_with(path, n.name)))
GROUP BY bucket, status;

-- name: oldest_counted
SELECT started_at FROM execution ORDER BY number DESC LIMIT 1 OFFSET $1;

-- name: durations
SELECT ended_at - started_at FROM execution WHERE path = $1 AND status = 'completed' ORDER BY number DESC LIMIT $2;

-- name: remove_execution
WITH ended AS MATERIALIZED (
  SELECT execution_id FROM execution WHERE execution_id = $1 AND ended_at IS NOT NULL FOR UPDATE
), events AS (DELETE FROM log AS t USING ended WHERE t.execution_id = ended.execution_id AND t.execution_id = $1
), work AS (
  DELETE FROM queue AS t USING ended
  WHERE t.node_id > ended.execution_id::text || ':' AND t.node_id < ended.execution_id::text || ';'
), timers AS (DELETE FROM timer AS t USING ended WHERE t.execution_id = ended.execution_id
), messages AS (DELETE FROM message AS t USING ended WHERE t.execution_id = ended.execution_id
), keys AS (DELETE FROM request_key AS t USING ended WHERE t.execution_id = ended.execution_id
), letters AS (DELETE FROM dlq AS t USING ended WHERE t.execution_id = ended.execution_id
), snapshots AS (DELETE FROM snapshot AS t USING ended WHERE t.execution_id = ended.execution_id)
DELETE FROM execution AS t USING ended WHERE t.execution_id = ended.execution_id RETURNING t.last_seq;

-- name: list_writers
SELECT writer_id::text, last_seq FROM writer WHERE last_seq > 0 ORDER BY writer_id;

-- name: read_feed
-- The rows of the next page of every stream; of rows without a wanted type, only the last.
SELECT w.writer_id, w.seen, e.writer_seq, e.size, e.execution_id::text, e.seq, e.events
FROM (
  SELECT writer_id, coalesce(p.seen, 0) AS seen FROM writer
  LEFT JOIN unnest($1::bigint[], $2::bigint[]) AS p (id, seen) ON p.id = writer_id WHERE last_seq > coalesce(p.seen, 0)
) AS w CROSS JOIN LATERAL (
  SELECT *, max(writer_seq) OVER () AS last FROM (
    SELECT *, sum(least(size, writer_seq - w.seen)) OVER (ORDER BY writer_seq) - size AS before FROM (
      SELECT writer_seq, size, execution_id, seq, events FROM log
      WHERE writer_id = w.writer_id AND writer_seq > w.seen ORDER BY writer_seq LIMIT $3
    ) AS next
  ) AS counted WHERE before < $3
) AS e
WHERE $4::text[] IS NULL OR e.events LIKE ANY ($4) OR e.writer_seq = e.last
ORDER BY w.writer_id, e.writer_seq;

-- name: claim_work
SELECT claim, epoch, attempt, node_id, work FROM claim_work($1);

-- name: extend_leases
WITH held AS (
  SELECT q.node_id FROM unnest($1::text[], $2::bigint[]) AS x (node_id, epoch)
  JOIN queue AS q ON q.node_id = x.node_id AND q.epoch = x.epoch
  WHERE q.status = 'leased' AND q.worker_id = $3 ORDER BY q.node_id FOR UPDATE OF q
)
UPDATE queue SET lease_until = greatest(lease_until, to_time($4)), last_heartbeat = now()
FROM held WHERE queue.node_id = held.node_id RETURNING queue.node_id;

-- name: any_expired
SELECT EXISTS (
  SELECT FROM queue WHERE status = 'leased' AND lease_until BETWEEN to_time($2) AND to_time($1)
);

-- name: take_leases_back
WITH gone AS MATERIALIZED (
  SELECT node_id, epoch, attempts, worker_id, to_ms(lease_until) AS until FROM queue
  WHERE status = 'leased' AND lease_until BETWEEN to_time($3) AND to_time($1) ORDER BY lease_until, id
  FOR UPDATE SKIP LOCKED
)
UPDATE queue SET status = CASE WHEN queue.attempts >= $2 THEN 'dead' ELSE 'queued' END, worker_id = NULL,
  lease_until = NULL, rank = -1, updated_at = now()
FROM gone WHERE queue.node_id = gone.node_id
RETURNING gone.until, queue.node_id, gone.epoch, gone.attempts, gone.worker_id, queue.context;

-- name: put_messages
INSERT INTO message (message_id, execution_id, message)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::json[]) ON CONFLICT (message_id) DO NOTHING;

-- name: expire_leases
-- The work of an execution is a range of work ids, here and below: a semicolon sorts after a colon.
WITH held AS (
  SELECT node_id FROM queue
  WHERE node_id > $1::bigint::text || ':' AND node_id < $1::bigint::text || ';' AND status = 'leased'
  ORDER BY node_id FOR UPDATE
)
UPDATE queue SET lease_until = to_time($2) FROM held WHERE queue.node_id = held.node_id RETURNING 1;

-- name: abandon_leases
WITH held AS (
  SELECT q.node_id FROM unnest($1::text[], $2::bigint[]) AS x (node_id, epoch)
  JOIN queue AS q ON q.node_id = x.node_id AND q.epoch = x.epoch
  WHERE q.status = 'leased' AND q.worker_id = $3 AND q.lease_until <= to_time($5) ORDER BY q.node_id FOR UPDATE OF q
)
UPDATE queue SET lease_until = to_time($4) FROM held WHERE queue.node_id = held.node_id RETURNING 1;

-- name: disown_leases
WITH rest AS (
  SELECT q.node_id FROM queue AS q
  WHERE q.status = 'leased' AND q.lease_until IS NOT NULL AND q.worker_id = $3 AND NOT EXISTS (
    SELECT FROM unnest($1::text[], $2::bigint[]) AS x (node_id, epoch)
    WHERE x.node_id = q.node_id AND x.epoch = q.epoch
  ) ORDER BY q.node_id FOR UPDATE OF q
)
UPDATE queue SET lease_until = to_time($4) FROM rest WHERE queue.node_id = rest.node_id RETURNING 1;

-- name: leases_until
SELECT node_id, epoch FROM queue WHERE status = 'leased' AND worker_id = $1 AND lease_until = to_time($2);

-- name: release_leases
WITH held AS (
  SELECT q.node_id FROM unnest($1::text[], $2::bigint[]) AS x (node_id, epoch)
  JOIN queue AS q ON q.node_id = x.node_id AND q.epoch = x.epoch
  WHERE q.status = 'leased' ORDER BY q.node_id FOR UPDATE OF q
)
UPDATE queue SET status = 'queued', worker_id = NULL, lease_until = NULL, rank = -1, attempts = attempts - 1,
  available_at = CASE WHEN available_at IS NULL THEN NULL ELSE least(available_at, to_time($3)) END, updated_at = now()
FROM held WHERE queue.node_id = held.node_id;

-- name: age_work
WITH old AS MATERIALIZED (
  SELECT q.node_id FROM queue AS q
  WHERE q.status = 'queued' AND (q.available_at IS NULL OR q.available_at <= to_time($1)) AND q.created_at <= to_time($2)
    AND q.priority < (SELECT max(p.priority) FROM queue AS p WHERE p.status = 'queued' AND p.pool = q.pool)
  FOR UPDATE OF q SKIP LOCKED
)
UPDATE queue SET priority = priority + 1, updated_at = now() FROM old WHERE queue.node_id = old.node_id RETURNING 1;

-- name: due_timers
-- Timers of civil time are due by another clock than those of durations.
SELECT execution_id::text, timer_id, at FROM timer
WHERE at <= greatest($1, $3::bigint)
  AND at <= CASE WHEN timer_id COLLATE "C" >= 'until:' AND timer_id COLLATE "C" < 'until;' THEN $3 ELSE $1 END
ORDER BY at, execution_id, timer_id LIMIT $2;

-- name: next_time
SELECT least(
  (SELECT min(at) FROM timer WHERE at > $1),
  to_ms((SELECT min(lease_until) FROM queue WHERE status = 'leased' AND lease_until > to_time($1))),
  to_ms((
    SELECT min(available_at) FROM queue
    WHERE status = 'queued' AND available_at IS NOT NULL AND available_at > to_time($1)
  ))
);

-- name: read_messages
SELECT execution_id::text, message FROM message ORDER BY number LIMIT $1;

-- name: put_snapshot
-- A snapshot is only a cache, so the transaction does not wait for the disk.
INSERT INTO snapshot (execution_id, seq, version, state)
SELECT $1, $2, $3, $4 FROM set_config('synchronous_commit', 'off', true)
ON CONFLICT (execution_id) DO UPDATE SET seq = excluded.seq, version = excluded.version, state = excluded.state
WHERE excluded.seq >= snapshot.seq OR excluded.version <> snapshot.version;

-- name: read_saved_states
-- A row with a state is a snapshot; the others are a page of the log after it, as in `read_events`.
WITH asked AS (
  SELECT a.execution_id, s.seq, s.state FROM unnest($1::bigint[]) AS a (execution_id)
  LEFT JOIN snapshot AS s ON s.execution_id = a.execution_id AND s.version = $2
)
SELECT execution_id, seq, 0 AS size, NULL AS events, state FROM asked WHERE seq IS NOT NULL
UNION ALL
SELECT asked.execution_id, page.seq, page.size, page.events, NULL
FROM asked CROSS JOIN LATERAL (
  SELECT l.seq, l.size, l.events FROM log AS l
  WHERE l.execution_id = asked.execution_id AND l.seq > coalesce(asked.seq, 0) AND l.seq <= coalesce(
    (SELECT min(m.seq) FROM log AS m WHERE m.execution_id = asked.execution_id AND m.seq >= coalesce(asked.seq, 0) + $3::bigint),
    9223372036854775807
  )
) AS page
ORDER BY execution_id, seq;

-- name: lock_path
INSERT INTO catalog_path (path, last_version) VALUES ($1, 0)
ON CONFLICT (path) DO UPDATE SET last_version = catalog_path.last_version RETURNING last_version;

-- name: next_version
UPDATE catalog_path SET last_version = last_version + 1 WHERE path = $1 RETURNING last_version;

-- name: put_playbook
INSERT INTO playbook (playbook, canonical) VALUES ($1, $2) ON CONFLICT (playbook) DO NOTHING;

-- name: find_canonical
SELECT canonical FROM playbook WHERE playbook = $1;

-- name: list_canonicals
SELECT playbook, canonical FROM playbook WHERE playbook = ANY ($1::text[]);

-- name: put_version
INSERT INTO catalog (path, version, playbook, content, registered_at) VALUES ($1, $2, $3, $4, $5);

-- name: find_version
SELECT path, version, playbook, content, registered_at FROM catalog
WHERE path = $1 AND ($2::bigint IS NULL OR version = $2) ORDER BY version DESC LIMIT 1;

-- name: find_content_hash
SELECT playbook FROM catalog
WHERE path = $1 AND ($2::bigint IS NULL OR version = $2) ORDER BY version DESC LIMIT 1;

-- name: list_entries
SELECT DISTINCT ON (path) path, version, playbook, registered_at, count(*) OVER (PARTITION BY path) AS versions
FROM catalog WHERE path > $2 AND ($1::text IS NULL OR position(lower($1 COLLATE "C") IN lower(path)) > 0)
  AND ($4::text[] IS NULL OR EXISTS (SELECT FROM unnest($4::text[]) AS n (name) WHERE starts_with(path, n.name)))
ORDER BY path, version DESC LIMIT $3;

-- name: list_versions
SELECT path, version, playbook, registered_at FROM catalog WHERE path = $1 ORDER BY version DESC;

-- name: remove_versions
DELETE FROM catalog WHERE path = $1 AND ($2::bigint IS NULL OR version = $2) RETURNING version, playbook;

-- name: put_result
INSERT INTO result (ref, data, meta) VALUES ($1, $2, $3)
ON CONFLICT (ref) DO UPDATE SET data = excluded.data, meta = excluded.meta;

-- name: put_piece
INSERT INTO result_piece (ref, number, data) VALUES ($1, $2, $3);

-- name: put_result_of_pieces
WITH piece AS (DELETE FROM result_piece WHERE ref = $1 RETURNING number, data)
INSERT INTO result (ref, data, meta) SELECT $1, string_agg(data, ''::bytea ORDER BY number), $2 FROM piece
ON CONFLICT (ref) DO UPDATE SET data = excluded.data, meta = excluded.meta;

-- name: read_result
SELECT substr(data, $2, $3) FROM result WHERE ref = $1;

-- name: read_whole_result
SELECT substr(data, $2) FROM result WHERE ref = $1;

-- name: read_result_meta
SELECT meta FROM result WHERE ref = $1;

-- name: list_results
SELECT ref, meta FROM result WHERE ref > $1 ORDER BY ref LIMIT $2;

-- name: remove_results
DELETE FROM result WHERE ref = ANY ($1::text[]);

-- name: put_worker
INSERT INTO runtime (
  worker_id, pool, tags, capacity, active, status, host, version, registered_at, last_heartbeat, credentials
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (worker_id) DO UPDATE
SET pool = excluded.pool, tags = excluded.tags, capacity = excluded.capacity, active = excluded.active,
  status = excluded.status, host = excluded.host, version = excluded.version, registered_at = excluded.registered_at,
  last_heartbeat = excluded.last_heartbeat, credentials = excluded.credentials
RETURNING 1;

-- name: note_worker
UPDATE runtime SET last_heartbeat = greatest(last_heartbeat, $2), active = $3 WHERE worker_id = $1 RETURNING status;

-- name: set_worker_status
UPDATE runtime SET status = $2 WHERE worker_id = $1 RETURNING 1;

-- name: leave_worker
UPDATE runtime SET status = 'gone' WHERE worker_id = $1 AND registered_at = $2 RETURNING 1;

-- name: remove_silent_workers
DELETE FROM runtime WHERE last_heartbeat < $1 RETURNING 1;

-- name: remove_worker
DELETE FROM runtime WHERE worker_id = $1 RETURNING 1;

-- name: list_workers
SELECT worker_id, pool, tags, capacity, active, status, host, version, registered_at, last_heartbeat, credentials
FROM runtime ORDER BY worker_id;

-- name: held_work
SELECT node_id AS work_id, attempts AS attempt, to_ms(lease_until) AS until FROM queue
WHERE status = 'leased' AND lease_until IS NOT NULL AND worker_id = $1 ORDER BY epoch, node_id LIMIT 200;

-- name: queue_depths
SELECT
  pool, requires, count(*) FILTER (WHERE status = 'queued') AS queued,
  count(*) FILTER (WHERE status = 'leased') AS leased, count(*) FILTER (WHERE status = 'dead') AS dead,
  to_ms(min(created_at) FILTER (WHERE status = 'queued')) AS oldest
FROM queue GROUP BY pool, requires ORDER BY pool, requires;

-- name: queue_flows
SELECT pool, priority, flow, count(*) AS queued, to_ms(min(created_at)) AS oldest FROM queue WHERE status = 'queued'
GROUP BY pool, priority, flow ORDER BY pool, priority DESC, flow;

-- name: parked
SELECT path, sum((projection ->> 'parked')::int)::bigint AS parked FROM execution
WHERE status IN ('pending', 'running', 'waiting', 'paused') AND projection ->> 'parked' IS NOT NULL GROUP BY path;

-- name: limits
SELECT slot AS "group", count(*) FILTER (WHERE NOT queued) AS running, count(*) FILTER (WHERE queued) AS waiting,
  min(started_at) FILTER (WHERE queued) AS oldest
FROM (
  SELECT slot, queued, started_at FROM execution WHERE slot IS NOT NULL
  UNION ALL SELECT above, queued, started_at FROM execution WHERE above IS NOT NULL
) AS counted GROUP BY slot ORDER BY slot;

-- name: work_limits
SELECT limits, count(*) FILTER (WHERE status = 'queued'), count(*) FILTER (WHERE status = 'leased') FROM queue
WHERE limits <> '' GROUP BY limits;

-- name: work_ahead
SELECT w.node_id, w.limits, (
  SELECT count(*) FROM queue AS q WHERE q.status = 'queued' AND q.available_at IS NULL AND q.pool = w.pool
    AND (q.priority > w.priority OR (q.priority = w.priority AND (q.rank, q.id) < (w.rank, w.id)))
)
FROM queue AS w
WHERE w.node_id > $1::bigint::text || ':' AND w.node_id < $1::bigint::text || ';' AND w.status = 'queued';

-- name: place_in_line
SELECT x.slot, (SELECT count(*) FROM execution AS y WHERE y.slot = x.slot AND y.queued AND y.number <= x.number)
FROM execution AS x WHERE x.execution_id = $1 AND x.queued;

-- name: put_token
INSERT INTO token (token_id, digest, role, name, created_at, created_by, expires_at, revoked_at, used_at, pool, namespaces)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING RETURNING 1;

-- name: find_token
SELECT token_id, digest, role, name, created_at, created_by, expires_at, revoked_at, used_at, pool, namespaces FROM token
WHERE digest = $1;

-- name: list_tokens
SELECT token_id, digest, role, name, created_at, created_by, expires_at, revoked_at, used_at, pool, namespaces FROM token
ORDER BY created_at, token_id;

-- name: valid_tokens
SELECT token_id FROM token
WHERE token_id = ANY ($1::text[]) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2);

-- name: revoke_token
UPDATE token SET revoked_at = $2 WHERE token_id = $1 AND revoked_at IS NULL RETURNING 1;

-- name: note_token
UPDATE token SET used_at = greatest(used_at, $2) WHERE token_id = $1;

-- name: put_credential
INSERT INTO credential (name, kind, sealed, about, version, created_at, updated_at) VALUES ($1, $2, $3, $4, 1, $5, $5)
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, sealed = excluded.sealed, about = excluded.about, version = credential.version + 1,
  updated_at = excluded.updated_at
RETURNING version;

-- name: find_credential
SELECT name, kind, sealed, about, version, created_at, updated_at FROM credential WHERE name = $1;

-- name: list_credentials
SELECT name, kind, about, version, created_at, updated_at FROM credential ORDER BY name;

-- name: known_credentials
SELECT name FROM credential WHERE name = ANY ($1::text[]);

-- name: remove_credential
DELETE FROM credential WHERE name = $1 RETURNING version;

-- name: list_data_keys
SELECT key_id, wrapped, created_at FROM data_key ORDER BY created_at DESC, key_id;

-- name: add_data_key
INSERT INTO data_key (key_id, wrapped, created_at) VALUES ($1, $2, $3);

-- name: rewrap_data_keys
UPDATE data_key SET wrapped = new.wrapped
FROM unnest($1::text[], $2::bytea[], $3::bytea[]) AS new (key_id, old, wrapped)
WHERE data_key.key_id = new.key_id AND data_key.wrapped = new.old
RETURNING 1;

-- name: find_access_token
SELECT sealed, expires_at, version FROM access_token WHERE key = $1;

-- name: claim_access_token
INSERT INTO access_token AS known (key, sealed, expires_at, version, holder, held_until)
VALUES ($1, NULL, $5, 0, $2, $5)
ON CONFLICT (key) DO UPDATE SET holder = $2, held_until = $5
WHERE known.version = $3 AND (known.holder IS NULL OR known.holder = $2 OR known.held_until <= $4)
RETURNING 1;

-- name: keep_access_token
UPDATE access_token
SET sealed = coalesce($3::bytea, sealed), expires_at = CASE WHEN $3::bytea IS NULL THEN expires_at ELSE $4 END,
  version = version + ($3::bytea IS NOT NULL)::int, holder = NULL
WHERE key = $1 AND holder = $2
RETURNING 1;

-- name: forget_access_tokens
DELETE FROM access_token WHERE expires_at < $1 AND held_until < $1;

-- name: put_audit
INSERT INTO audit (at, actor, action, entity, detail, before, after, digest)
SELECT at, actor, action, entity, detail, before, after, digest FROM unnest($1::audit_row[]);

-- name: lock_audit
-- One server links at a time; the others leave it to that one.
SELECT pg_try_advisory_xact_lock($1);

-- name: find_audit_head
SELECT position, hash FROM audit_head;

-- name: set_audit_head
INSERT INTO audit_head (one, position, hash) VALUES (1, $1, $2)
ON CONFLICT (one) DO UPDATE SET position = excluded.position, hash = excluded.hash;

-- name: find_new_audit
SELECT number, at, actor, action, entity, detail, before, after, digest, position, previous, hash FROM audit
WHERE hash IS NULL ORDER BY number LIMIT $1;

-- name: link_audit
UPDATE audit SET position = x.position, previous = x.previous, hash = x.hash
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) AS x (number, position, previous, hash)
WHERE audit.number = x.number;

-- name: list_audit_chain
SELECT number, at, actor, action, entity, detail, before, after, digest, position, previous, hash FROM audit
WHERE position > $1 ORDER BY position LIMIT $2;

-- name: list_unlinked_audit
SELECT number, at, actor, action, entity, detail, before, after, digest, position, previous, hash FROM audit
WHERE position IS NULL AND number > $1 ORDER BY number LIMIT $2;

-- name: list_audit
SELECT number, at, actor, action, entity, detail, before, after, digest, position, previous, hash FROM audit
WHERE ($1::text IS NULL OR actor = $1) AND ($2::text IS NULL OR entity = $2) AND ($3::bigint IS NULL OR number < $3)
ORDER BY number DESC LIMIT $4;

-- name: find_table
-- Reads the tables of the catalog. `to_regclass` answers from a cache of the session, which a wait for an advisory lock leaves old.
SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = $2;

-- name: read_migrations
SELECT name, coalesce(to_jsonb(migration) ->> 'hash', '') AS hash FROM migration ORDER BY level;

-- name: lock_migrations
SELECT pg_advisory_xact_lock($1);

-- name: put_migration
INSERT INTO migration (level, name, hash) VALUES ($1, $2, $3);

-- name: make_partitions
SELECT make_partitions($1);

-- name: list_partitions
-- Monthly partitions, oldest first, with the range of their execution ids.
SELECT name, (bounds)[1]::bigint, (bounds)[2]::bigint FROM (
  SELECT c.relname AS name,
    regexp_match(pg_get_expr(c.relpartbound, c.oid), $p$FROM \('(\d+)'\) TO \('(\d+)'\)$p$) AS bounds
  FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid WHERE i.inhparent = 'log'::regclass
) AS found
WHERE bounds IS NOT NULL ORDER BY name;

-- name: lock_range
SELECT FROM execution WHERE execution_id >= $1 AND execution_id < $2 ORDER BY execution_id FOR UPDATE;

-- name: count_open
SELECT count(*) FROM execution WHERE execution_id >= $1 AND execution_id < $2 AND ended_at IS NULL;

-- name: count_range
SELECT count(*) FROM execution WHERE execution_id >= $1 AND execution_id < $2;

-- name: first_events_of_open
SELECT x.execution_id::text, l.seq, l.events FROM execution AS x CROSS JOIN LATERAL (
  SELECT seq, events FROM log WHERE log.execution_id = x.execution_id ORDER BY seq LIMIT 1
) AS l
WHERE x.ended_at IS NULL;

-- name: read_range
SELECT execution_id::text, seq, events FROM log WHERE execution_id >= $1 AND execution_id < $2 ORDER BY execution_id, seq;

-- name: drop_partition
SELECT drop_partition($1);

-- name: prune_execution
DELETE FROM execution WHERE execution_id >= $1 AND execution_id < $2;

-- name: prune_snapshot
DELETE FROM snapshot WHERE execution_id >= $1 AND execution_id < $2;

-- name: prune_timer
DELETE FROM timer WHERE execution_id >= $1 AND execution_id < $2;

-- name: prune_message
DELETE FROM message WHERE execution_id >= $1 AND execution_id < $2;

-- name: prune_queue
DELETE FROM queue WHERE execution_id >= $1 AND execution_id < $2;

-- name: prune_dlq
DELETE FROM dlq WHERE execution_id >= $1 AND execution_id < $2;

-- name: shape_of_schema
-- Every object of a schema with its definition, without partitions.
SELECT 'column ' || c.relname || '.' || a.attname,
  format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
  || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') || CASE a.attidentity::text WHEN '' THEN '' ELSE ' identity' END
  || ' ' || a.attstorage::text
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p', 'v', 'c') AND NOT c.relispartition
  AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT CASE c.relkind WHEN 'S' THEN 'sequence ' WHEN 'v' THEN 'view ' WHEN 'c' THEN 'type ' ELSE 'table ' END || c.relname,
  coalesce(array_to_string(c.reloptions, ', '), '') || CASE c.relkind WHEN 'v' THEN pg_get_viewdef(c.oid) ELSE '' END
FROM pg_class AS c
WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'p', 'v', 'S', 'c') AND NOT c.relispartition
UNION ALL
SELECT 'index ' || c.relname, pg_get_indexdef(c.oid)
FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid JOIN pg_class AS t ON t.oid = i.indrelid
WHERE c.relnamespace = to_regnamespace($1) AND NOT t.relispartition
UNION ALL
SELECT 'constraint ' || c.conname, pg_get_constraintdef(c.oid)
FROM pg_constraint AS c JOIN pg_class AS t ON t.oid = c.conrelid
WHERE c.connamespace = to_regnamespace($1) AND NOT t.relispartition
UNION ALL
SELECT 'function ' || p.proname || '(' || pg_get_function_arguments(p.oid) || ')', pg_get_functiondef(p.oid)
FROM pg_proc AS p WHERE p.pronamespace = to_regnamespace($1);

-- name: list_logs
SELECT execution_id, execution_id::text AS name FROM log WHERE execution_id > $1 AND seq = size
ORDER BY execution_id LIMIT $2;

-- name: beside
-- Work, timers, messages and the row of an execution; one statement, so that all are of one snapshot.
SELECT 'work' AS what, to_ms(created_at) AS at, status AS name, context AS body, id AS place
FROM queue WHERE node_id > $1::bigint::text || ':' AND node_id < $1::bigint::text || ';'
UNION ALL
SELECT 'timer', at, timer_id, NULL, 0 FROM timer WHERE execution_id = $1
UNION ALL
SELECT 'message', 0, execution_id::text, message, number FROM message WHERE execution_id = $1
UNION ALL
SELECT 'row', last_seq, execution_id::text, projection, 0 FROM execution WHERE execution_id = $1
ORDER BY what, place, name;

-- name: list_open
-- Each status is a constant in its own query, so that the index is used; ended executions are not read.
SELECT x.number, x.execution_id::text, x.status NOT IN ('waiting', 'paused') AND NOT x.queued
  AND NOT EXISTS (
    SELECT FROM queue AS q WHERE q.node_id > x.execution_id::text || ':' AND q.node_id < x.execution_id::text || ';'
  )
  AND NOT EXISTS (SELECT FROM timer AS t WHERE t.execution_id = x.execution_id)
  AND x.execution_id NOT IN (SELECT execution_id FROM message) -- few rows, read once
FROM (
  (
    SELECT number, execution_id, status, queued FROM execution
    WHERE status = 'pending' AND number > $1 AND started_at <= $2 ORDER BY number LIMIT $3
  ) UNION ALL (
    SELECT number, execution_id, status, queued FROM execution
    WHERE status = 'running' AND number > $1 AND started_at <= $2 ORDER BY number LIMIT $3
  ) UNION ALL (
    SELECT number, execution_id, status, queued FROM execution
    WHERE status = 'waiting' AND number > $1 AND started_at <= $2 ORDER BY number LIMIT $3
  ) UNION ALL (
    SELECT number, execution_id, status, queued FROM execution
    WHERE status = 'paused' AND number > $1 AND started_at <= $2 ORDER BY number LIMIT $3
  ) UNION ALL (
    SELECT number, execution_id, status, queued FROM execution
    WHERE execution_id IN (SELECT execution_id FROM dlq WHERE status = 'replaying') AND ended_at IS NOT NULL
      AND number > $1 AND started_at <= $2 ORDER BY number LIMIT $3
  )
) AS x
ORDER BY x.number LIMIT $3;

-- name: take_duty
INSERT INTO duty (name, holder, until) VALUES ($1, $2, $4)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE duty.holder = excluded.holder OR duty.until <= $3
RETURNING 1;

-- name: empty_executions
DELETE FROM execution;

-- name: empty_queue
DELETE FROM queue;

-- name: empty_timers
DELETE FROM timer;

-- name: empty_messages
DELETE FROM message;

-- name: empty_snapshots
DELETE FROM snapshot;

-- name: raise_epoch
SELECT setval('lease_epoch', greatest((SELECT last_value FROM lease_epoch), $1::bigint));

-- name: skip_epochs
SELECT setval('lease_epoch', (SELECT last_value FROM lease_epoch) + $1::bigint);

-- name: remove_writers
-- Writers of ended processes without events, which no feed knows. A live one is inserted again when it commits.
DELETE FROM writer WHERE last_seq = 0 AND started_at < now() - interval '1 day' AND writer_id <> $1;

-- name: keep_keys
-- The first execution of a key stays until the key expires. Sorted, so that transactions do not deadlock.
INSERT INTO request_key AS known (key, execution_id, at)
SELECT given.key, given.execution_id::bigint, $3 FROM unnest($1::text[], $2::text[]) AS given (key, execution_id) ORDER BY given.key
ON CONFLICT (key) DO UPDATE SET
  execution_id = CASE WHEN known.at < $4 THEN excluded.execution_id ELSE known.execution_id END,
  at = CASE WHEN known.at < $4 THEN excluded.at ELSE known.at END
RETURNING key, execution_id::text;

-- name: forget_keys
DELETE FROM request_key WHERE at < $1;

-- name: put_outbox
INSERT INTO outbox (key, topic, target, address, payload, headers, auth, execution_id, available_at, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (key) DO NOTHING RETURNING number;

-- name: number_of_outbox
SELECT number FROM outbox WHERE key = $1;

-- name: claim_outbox
-- Messages that another transaction is claiming are skipped. MATERIALIZED: a plan that repeated the subquery would skip its
-- own rows and claim more.
WITH due AS MATERIALIZED (
  SELECT number FROM outbox WHERE state = 'pending' AND available_at <= $1 ORDER BY available_at, number LIMIT $3
  FOR UPDATE SKIP LOCKED
)
UPDATE outbox AS o SET attempts = attempts + 1, available_at = $2 FROM due WHERE o.number = due.number
RETURNING
  o.number, key, topic, target, address, payload, headers, auth, execution_id, state, attempts, available_at, created_at,
  delivered_at, error;

-- name: deliver_outbox
UPDATE outbox SET state = 'delivered', delivered_at = $3, error = ''
WHERE number = $1 AND attempts = $2 AND state = 'pending' RETURNING 1;

-- name: fail_outbox
UPDATE outbox SET state = $3, available_at = coalesce($4, available_at), error = $5
WHERE number = $1 AND attempts = $2 AND state = 'pending' RETURNING 1;

-- name: find_outbox
SELECT
  number, key, topic, target, address, payload, headers, auth, execution_id, state, attempts, available_at, created_at,
  delivered_at, error
FROM outbox WHERE number = $1;

-- name: list_outbox
SELECT
  number, key, topic, target, address, payload, headers, auth, execution_id, state, attempts, available_at, created_at,
  delivered_at, error
FROM outbox WHERE ($1::text IS NULL OR state = $1) AND ($2::bigint IS NULL OR number < $2) ORDER BY number DESC LIMIT $3;

-- name: retry_outbox
WITH was AS (SELECT number, state FROM outbox WHERE number = $1 AND state IN ('pending', 'dead') FOR UPDATE)
UPDATE outbox AS o SET state = 'pending', attempts = 0, available_at = $2 FROM was WHERE o.number = was.number
RETURNING was.state, o.state;

-- name: discard_outbox
WITH was AS (SELECT number, state FROM outbox WHERE number = $1 AND state IN ('pending', 'dead') FOR UPDATE)
UPDATE outbox AS o SET state = 'discarded', error = $2 FROM was WHERE o.number = was.number RETURNING was.state, o.state;

-- name: count_outbox
SELECT
  (SELECT count(*) FROM outbox WHERE state = 'pending'), (SELECT count(*) FROM outbox WHERE state = 'dead'),
  (SELECT min(available_at) FROM outbox WHERE state = 'pending');

-- name: forget_outbox
DELETE FROM outbox WHERE state IN ('delivered', 'discarded') AND coalesce(delivered_at, created_at) < $1 RETURNING 1;

-- name: prune_letters
DELETE FROM dlq WHERE closed_at < $1 RETURNING 1;

-- name: empty_letters
-- Messages of subscriptions are not in the log.
DELETE FROM dlq WHERE tool_kind IS DISTINCT FROM 'subscription';

-- name: find_letter
SELECT
  message_id, execution_id, step_id, run_id, reason, attempts, last_error, fingerprint, first_seen, last_seen, path,
  loop_index, loop_key, task, tool_kind, sink_id, replays, last_stack, payload, context_excerpt, error, status, closed_at,
  closed_by, note
FROM dlq WHERE message_id = $1;

-- name: list_letters
-- Conditions are added behind the first one.
SELECT
  message_id, execution_id, step_id, run_id, reason, attempts, last_error, fingerprint, first_seen, last_seen, path,
  loop_index, loop_key, task, tool_kind, sink_id, replays, last_stack, payload, context_excerpt, error, status, closed_at,
  closed_by, note
FROM dlq WHERE attempts > -1 ORDER BY last_seen DESC, message_id DESC LIMIT $1;

-- name: group_letters
WITH chosen AS (SELECT * FROM dlq WHERE attempts > -1), grouped AS (
  SELECT fingerprint, count(*) AS count, count(DISTINCT execution_id) AS executions, min(first_seen) AS oldest,
    max(last_seen) AS newest
  FROM chosen GROUP BY fingerprint
), newest AS (
  SELECT *, row_number() OVER (PARTITION BY fingerprint ORDER BY last_seen DESC, message_id DESC) AS place FROM chosen
)
SELECT n.fingerprint, n.path, n.step_id, n.task, n.tool_kind, n.reason, n.last_error, n.message_id, g.count, g.executions,
  g.oldest, g.newest
FROM newest AS n JOIN grouped AS g ON g.fingerprint = n.fingerprint
WHERE n.place = 1 ORDER BY g.count DESC, n.fingerprint LIMIT $1;

-- name: count_letters
SELECT status, count(*) FROM dlq GROUP BY status;

-- name: put_schedule
INSERT INTO schedule (
  schedule_id, path, version, owner, spec, paused, next_at, start_at, created_at, created_by, changed_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (schedule_id) DO NOTHING RETURNING 1;

-- name: save_schedule
UPDATE schedule SET
  path = $2, version = $3, owner = $4, spec = $5, paused = $6,
  next_at = $7, start_at = $8, created_at = $9, created_by = $10, changed_at = $11, revision = revision + 1
WHERE schedule_id = $1 AND revision = $12 RETURNING 1;

-- name: remove_schedule
WITH gone AS (DELETE FROM firing WHERE schedule_id = $1)
DELETE FROM schedule WHERE schedule_id = $1 RETURNING revision;

-- name: find_schedule
SELECT
  schedule_id, path, version, owner, spec, paused, next_at, start_at, created_at, created_by, changed_at,
  revision
FROM schedule WHERE schedule_id = $1;

-- name: list_schedules
SELECT
  schedule_id, path, version, owner, spec, paused, next_at, start_at, created_at, created_by, changed_at,
  revision
FROM schedule
WHERE ($1::text IS NULL OR path = $1) AND ($2::text IS NULL OR owner = $2) AND ($3::text IS NULL OR schedule_id > $3)
  AND ($5::text[] IS NULL OR EXISTS (SELECT FROM unnest($5::text[]) AS n (name) WHERE starts_with(path, n.name)))
ORDER BY schedule_id LIMIT $4;

-- name: due_schedules
SELECT
  schedule_id, path, version, owner, spec, paused, next_at, start_at, created_at, created_by, changed_at,
  revision
FROM schedule WHERE NOT paused AND start_at <= $1 ORDER BY start_at, schedule_id LIMIT $2;

-- name: put_firing
INSERT INTO firing (
  schedule_id, at, state, execution_id, reason, detail, last_at, count, is_more, decided_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (schedule_id, at) DO NOTHING;

-- name: undecided_firings
SELECT schedule_id, at, state, execution_id, reason, detail, last_at, count, is_more, decided_at
FROM firing WHERE state IN ('due', 'queued') AND (schedule_id, at) > ($1, $2)
ORDER BY schedule_id, at LIMIT $3;

-- name: running_firings
SELECT schedule_id, at, state, execution_id, reason, detail, last_at, count, is_more, decided_at
FROM firing WHERE schedule_id = $1 AND state = 'started' ORDER BY at;

-- name: decide_firing
UPDATE firing SET
  state = $3, execution_id = $4, reason = $5, detail = $6, last_at = $7, count = $8, is_more = $9, decided_at = $10
WHERE schedule_id = $1 AND at = $2 AND state IN ('due', 'queued') RETURNING 1;

-- name: settle_firings
UPDATE firing AS f SET state = 'ended' WHERE f.state = 'started' AND NOT EXISTS (
  SELECT 1 FROM execution AS e WHERE e.execution_id = f.execution_id::bigint AND e.ended_at IS NULL
) RETURNING 1;

-- name: list_firings
SELECT schedule_id, at, state, execution_id, reason, detail, last_at, count, is_more, decided_at
FROM firing WHERE schedule_id = $1 AND ($2::bigint IS NULL OR at < $2) ORDER BY at DESC LIMIT $3;

-- name: forget_firings
DELETE FROM firing WHERE at < $1 AND decided_at < $1 AND state NOT IN ('due', 'queued', 'started') RETURNING 1;

-- name: tally_firings
SELECT f.state, count(*), count(*) FILTER (WHERE f.state = 'ended' AND e.status IS DISTINCT FROM 'completed')
FROM firing AS f LEFT JOIN execution AS e ON e.execution_id = nullif(f.execution_id, '')::bigint
WHERE f.schedule_id = $1 GROUP BY f.state;

-- name: put_trigger
INSERT INTO playbook_trigger (
  kind, trigger_id, path, spec, version, owner, paused, created_at, created_by, changed_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (kind, trigger_id) DO NOTHING RETURNING 1;

-- name: save_trigger
UPDATE playbook_trigger SET
  path = $3, spec = $4, version = $5, owner = $6, paused = $7,
  created_at = $8, created_by = $9, changed_at = $10, revision = revision + 1
WHERE kind = $1 AND trigger_id = $2 AND revision = $11 RETURNING 1;

-- name: remove_trigger
DELETE FROM playbook_trigger WHERE kind = $1 AND trigger_id = $2 RETURNING 1;

-- name: find_trigger
SELECT kind, trigger_id, path, spec, version, owner, paused, created_at, created_by, changed_at, revision
FROM playbook_trigger WHERE kind = $1 AND trigger_id = $2;

-- name: list_triggers
SELECT kind, trigger_id, path, spec, version, owner, paused, created_at, created_by, changed_at, revision
FROM playbook_trigger
WHERE kind = $1 AND ($2::text IS NULL OR path = $2) AND ($3::text IS NULL OR owner = $3)
  AND ($4::text IS NULL OR trigger_id > $4)
ORDER BY trigger_id LIMIT $5;

-- name: put_user
INSERT INTO person (name, disabled, data) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING RETURNING 1;

-- name: save_user
UPDATE person SET disabled = $2, data = $3 WHERE name = $1 RETURNING 1;

-- name: remove_user
DELETE FROM person WHERE name = $1 RETURNING 1;

-- name: find_user
SELECT data FROM person WHERE name = $1;

-- name: list_users
SELECT data FROM person ORDER BY name;

-- name: put_group
INSERT INTO person_group (name, data) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET data = excluded.data RETURNING 1;

-- name: remove_group
DELETE FROM person_group WHERE name = $1 RETURNING 1;

-- name: leave_group
UPDATE person SET data = jsonb_set(data::jsonb, '{groups}', (data::jsonb -> 'groups') - $1::text)::json
WHERE data::jsonb -> 'groups' ? $1;

-- name: list_groups
SELECT data FROM person_group ORDER BY name;

-- name: put_session
INSERT INTO person_session (digest, name, created_at, expires_at) VALUES ($1, $2, $3, $4) RETURNING 1;

-- name: find_session
SELECT digest, name, created_at, expires_at FROM person_session WHERE digest = $1;

-- name: end_session
DELETE FROM person_session WHERE digest = $1 RETURNING 1;

-- name: end_sessions_of
DELETE FROM person_session WHERE name = $1;

-- name: forget_sessions
DELETE FROM person_session WHERE expires_at <= $1;

-- name: valid_sessions
SELECT s.digest, p.data FROM person_session AS s JOIN person AS p ON p.name = s.name
WHERE s.digest = ANY ($1::text[]) AND s.expires_at > $2 AND NOT p.disabled;

-- name: find_position
SELECT position, revision FROM feed_position WHERE name = $1;

-- name: put_position
INSERT INTO feed_position AS known (name, position, revision) VALUES ($1, $2, $3)
ON CONFLICT (name) DO UPDATE SET position = excluded.position, revision = excluded.revision
WHERE known.revision = $4 RETURNING 1;

-- name: begin_positions
INSERT INTO subscription_state SELECT name, '{}', 0, 0, 0, '', 0, '{}' FROM unnest($1::text[]) AS given (name) ORDER BY name
ON CONFLICT (state_id) DO NOTHING;

-- name: lock_positions
SELECT state_id, revision FROM subscription_state WHERE state_id = ANY ($1::text[]) ORDER BY state_id FOR UPDATE;

-- name: find_taken
SELECT m.state_id, m.message_id FROM subscription_message AS m
JOIN unnest($1::text[], $2::text[]) AS given (state_id, message_id) USING (state_id, message_id);

-- name: put_intake
UPDATE subscription_state SET
  position = $2, revision = $3, received = received + $4, poisoned = poisoned + $5,
  last_message = coalesce($6, last_message), last_at = coalesce($7, last_at)
WHERE state_id = $1;

-- name: put_taken
INSERT INTO subscription_message (state_id, message_id, seen_at) VALUES ($1, $2, $3);

-- name: find_progress
SELECT position, revision, received, poisoned, last_message, last_at, status FROM subscription_state WHERE state_id = $1;

-- name: note_status
INSERT INTO subscription_state VALUES ($1, '{}', 0, 0, 0, '', 0, $2)
ON CONFLICT (state_id) DO UPDATE SET status = excluded.status;

-- name: list_taken
SELECT message_id, seen_at FROM subscription_message WHERE state_id = $1 AND message_id = ANY ($2::text[]);

-- name: see_taken
UPDATE subscription_message SET seen_at = $3 WHERE state_id = $1 AND message_id = ANY ($2::text[]);

-- name: forget_taken
DELETE FROM subscription_message WHERE state_id = $1 AND seen_at < $2 RETURNING 1;

-- name: prune_states
WITH gone AS (
  DELETE FROM subscription_state WHERE left(state_id, -33) NOT IN (
    SELECT trigger_id FROM playbook_trigger WHERE kind = 'subscription'
  ) RETURNING state_id
), messages AS (DELETE FROM subscription_message AS m USING gone WHERE m.state_id = gone.state_id)
SELECT state_id FROM gone;
