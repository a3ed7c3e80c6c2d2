-- Every statement of the SQLite store, by name. Times are parameters.

-- name: read_migrations
SELECT hash FROM migration ORDER BY level;

-- name: put_migration
INSERT INTO migration (level, name, hash) VALUES (?, ?, ?);

-- name: put_probe
-- As large as most commits, so that it does not fit where they do not. Random: equal pages would not be written.
INSERT INTO probe (number, data) VALUES (1, randomblob(65536)) ON CONFLICT (number) DO UPDATE SET data = excluded.data;

-- name: append_events
-- An event is an array of its fields in order: field names would take more space than everything else.
INSERT INTO event_log (writer_seq, execution_id, seq, size, message, events)
VALUES ((SELECT coalesce(max(writer_seq), 0) FROM event_log) + ?3, ?1, ?2, ?3, ?4, ?5);

-- name: read_events
SELECT seq, size, events FROM event_log WHERE execution_id = ?1 AND seq > ?2 ORDER BY seq;

-- name: read_feed
SELECT writer_seq, size, events FROM event_log
WHERE writer_seq > ?2 AND execution_id <> ?1 ORDER BY writer_seq;

-- name: last_written
SELECT max(writer_seq) FROM event_log;

-- name: find_writer
SELECT writer_id FROM writer;

-- name: put_writer
INSERT INTO writer (writer_id) SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM writer);

-- name: read_facts
-- What a commit is judged on: the last seq of its log, whether its message was applied, the lease of its work.
SELECT
  (SELECT max(seq) FROM event_log WHERE execution_id = ?1),
  EXISTS (
    SELECT 1 FROM event_log WHERE substr(message, 1, 10) = substr(?2, 1, 10) AND +message = ?2 AND +execution_id = ?1
  ),
  (SELECT epoch FROM queue WHERE work_id = ?3 AND status = 'leased');

-- name: read_lease
SELECT epoch FROM queue WHERE work_id = ? AND status = 'leased';

-- name: put_execution
-- A row that would not change is not written.
INSERT INTO execution (status, projection, slot, queued, above, execution_id, path, parent_id, tags, started_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (execution_id) DO UPDATE SET status = excluded.status, projection = excluded.projection,
  slot = excluded.slot, queued = excluded.queued, above = excluded.above
WHERE execution.projection <> excluded.projection;

-- name: note_execution
INSERT INTO execution (execution_id, status, projection, path, tags, started_at) VALUES (?, 'pending', '{}', '', '[]', 0)
ON CONFLICT (execution_id) DO NOTHING;

-- name: holders
SELECT execution_id FROM (
  SELECT number, execution_id FROM execution WHERE slot = ?1 AND queued = 0
  UNION SELECT number, execution_id FROM execution WHERE above = ?1 AND queued = 0
) ORDER BY number;

-- name: queued_keys
WITH RECURSIVE known (slot) AS (
  SELECT min(slot) FROM execution WHERE slot IS NOT NULL
  UNION ALL
  SELECT (SELECT min(x.slot) FROM execution AS x WHERE x.slot > known.slot) FROM known WHERE known.slot IS NOT NULL
)
SELECT slot FROM known
WHERE slot IS NOT NULL AND EXISTS (SELECT 1 FROM execution AS x WHERE x.slot = known.slot AND x.queued = 1);

-- name: find_waiting
SELECT 1 FROM execution WHERE slot = ? AND queued = 1 AND status <> 'paused' LIMIT 1;

-- name: queued_of
SELECT execution_id, (SELECT max(seq) FROM event_log WHERE event_log.execution_id = execution.execution_id), projection
FROM execution WHERE slot = ? AND queued = 1 ORDER BY number LIMIT ?;

-- name: turn_of
SELECT turn FROM rate WHERE key = ?;

-- name: put_rate
INSERT INTO rate (key, turn) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET turn = excluded.turn;

-- name: forget_rates
DELETE FROM rate WHERE turn < ?;

-- name: find_execution
SELECT execution_id, (SELECT max(seq) FROM event_log WHERE event_log.execution_id = execution.execution_id), projection
FROM execution WHERE execution_id = ?;

-- name: list_executions
-- Conditions are added behind the first one. A condition that accepts everything would prevent the use of an index.
SELECT execution_id, (SELECT max(seq) FROM event_log WHERE event_log.execution_id = execution.execution_id), projection
FROM execution WHERE number > 0 ORDER BY number DESC LIMIT ?;

-- name: list_timings
SELECT execution_id, path, status, started_at, json_extract(projection, '$.ended_at') FROM execution WHERE number > 0
ORDER BY number DESC LIMIT ?;

-- name: open_counts
SELECT count(*) FROM (SELECT 1 FROM execution WHERE status = ? LIMIT ?);

-- name: recent_counts
-- The newest executions have the largest numbers.
SELECT bucket, status, count(*) FROM (
  SELECT (started_at - ?2) / ?3 AS bucket, status, started_at, path FROM execution
  ORDER BY number DESC LIMIT ?1
) WHERE started_at >= ?2 AND (?4 IS NULL OR EXISTS (
  SELECT 1 FROM (SELECT value FROM json_each(?4)) WHERE substr(path, 1, length(value)) = value
)) GROUP BY bucket, status;

-- name: oldest_counted
SELECT started_at FROM execution ORDER BY number DESC LIMIT 1 OFFSET ?;

-- name: durations
SELECT json_extract(projection, '$.ended_at') - started_at FROM execution
WHERE path = ? AND status = 'completed' ORDER BY number DESC LIMIT ?;

-- name: has_ended
SELECT coalesce((SELECT max(seq) FROM event_log WHERE event_log.execution_id = execution.execution_id), 0) FROM execution WHERE execution_id = ? AND json_extract(projection, '$.ended_at') IS NOT NULL;

-- name: keep_last_place
-- The last event of the feed leaves a row with its writer_seq behind, so that no number is reused.
UPDATE event_log SET execution_id = '', seq = writer_seq, size = 0, message = NULL, events = '[]'
WHERE writer_seq = (SELECT max(writer_seq) FROM event_log) AND execution_id = ?;

-- name: remove_places
DELETE FROM event_log WHERE execution_id = '' AND writer_seq < (SELECT max(writer_seq) FROM event_log);

-- name: remove_events
DELETE FROM event_log WHERE execution_id = ?;

-- name: remove_execution
DELETE FROM execution WHERE execution_id = ?;

-- name: remove_work_of
-- Work ids begin with the execution id and a colon, so the work of an execution is a range of the index; a semicolon sorts
-- after a colon.
DELETE FROM queue WHERE work_id > ?1 || ':' AND work_id < ?1 || char(59);

-- name: remove_timers_of
DELETE FROM timer WHERE execution_id = ?;

-- name: remove_messages_of
DELETE FROM message WHERE execution_id = ?;

-- name: remove_snapshot
DELETE FROM snapshot WHERE execution_id = ?;

-- name: put_work
INSERT INTO queue (
  work_id, execution_id, run_id, chunk, pool, requires, priority, available_at, created_at, work,
  flow, limits, status, epoch, attempts, worker_id, lease_until, number, place, rank
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'queued', 0, 0, '', 0, ?13, ?13, ?14)
ON CONFLICT (work_id) DO UPDATE
SET pool = excluded.pool, requires = excluded.requires, priority = excluded.priority,
  available_at = excluded.available_at, work = excluded.work, limits = excluded.limits;

-- name: put_leased_work
INSERT INTO queue (
  work_id, execution_id, run_id, chunk, pool, requires, priority, available_at, created_at, work,
  flow, limits, status, epoch, attempts, worker_id, lease_until, number, place, rank
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'leased', ?13, 1, ?14, ?15, -?13, ?16, 0)
ON CONFLICT (work_id) DO NOTHING;

-- name: next_rank
-- Work that came back has a rank below 0, which is first.
SELECT max(
  coalesce(
    (SELECT min(rank) FROM queue WHERE pool = ?1 AND priority = ?2 AND status = 'queued' AND rank >= 0),
    (
      WITH RECURSIVE other (pool) AS (
        SELECT min(pool) FROM queue WHERE status = 'queued'
        UNION ALL
        SELECT (SELECT min(q.pool) FROM queue AS q WHERE q.status = 'queued' AND q.pool > other.pool) FROM other
        WHERE other.pool IS NOT NULL
      )
      SELECT min((
        SELECT min(q.rank) FROM queue AS q
        WHERE q.pool = other.pool AND q.priority = ?2 AND q.status = 'queued' AND q.rank >= 0
      )) FROM other
    ),
    0
  ),
  coalesce((SELECT max(rank) + ?4 FROM queue WHERE priority = ?2 AND flow = ?3 AND status = 'queued'), 0)
);

-- name: remove_work
DELETE FROM queue WHERE work_id = ?;

-- name: last_place
SELECT max(coalesce(max(number), 0), 0) FROM queue;

-- name: ripen_work
-- Moves delayed work that is due into the index of due work, so that claims never step over work that is not due.
UPDATE queue SET available_at = 0 WHERE status = 'queued' AND available_at > 0 AND available_at <= ?;

-- name: has_due_work
-- Also returns whether work counts for a limit, the last place in the queue and the last block of epochs.
SELECT
  EXISTS (SELECT 1 FROM queue INDEXED BY queue_order WHERE pool = ?1 AND status = 'queued' AND available_at = 0)
  OR EXISTS (SELECT 1 FROM queue WHERE status = 'queued' AND available_at > 0 AND available_at <= ?2),
  EXISTS (SELECT 1 FROM queue WHERE limits <> ''),
  (SELECT max(coalesce(max(number), 0), 0) FROM queue),
  value, holder
FROM counter WHERE name = 'epoch';

-- name: find_work
SELECT priority, rank, place, number, attempts, work, flow FROM queue
WHERE pool = ? AND requires = ? AND limits = '' AND status = 'queued' AND available_at = 0
ORDER BY priority DESC, rank, place LIMIT ?;

-- name: find_limited_work
SELECT priority, rank, place, number, attempts, work, limits, flow FROM queue
WHERE pool = ? AND requires = ? AND limits = ? AND status = 'queued' AND available_at = 0
ORDER BY priority DESC, rank, place LIMIT ?;

-- name: leased_flows
SELECT flow FROM queue WHERE number < 0 AND status = 'leased';

-- name: next_limits
SELECT min(limits) FROM queue
WHERE pool = ? AND requires = ? AND limits > ? AND status = 'queued' AND available_at = 0;

-- name: work_limits
SELECT limits, sum(status = 'queued'), sum(status = 'leased') FROM queue WHERE limits <> '' GROUP BY limits;

-- name: next_requires
SELECT min(requires) FROM queue WHERE pool = ? AND requires > ? AND status = 'queued' AND available_at = 0;

-- name: last_epoch
SELECT value, holder FROM counter WHERE name = 'epoch';

-- name: take_epochs
UPDATE counter SET value = value + ?, holder = ? WHERE name = 'epoch' RETURNING value;

-- name: lease_work
UPDATE queue SET status = 'leased', number = -?1, epoch = ?1, attempts = attempts + 1, worker_id = ?2, lease_until = ?3
WHERE number = ?4;

-- name: extend_lease
UPDATE queue SET lease_until = max(lease_until, ?)
WHERE work_id = ? AND epoch = ? AND worker_id = ? AND status = 'leased';

-- name: expired_leases
SELECT number, work_id, epoch, attempts, worker_id, lease_until, work FROM queue
WHERE number < 0 AND lease_until BETWEEN ? AND ?;

-- name: take_lease_back
UPDATE queue SET status = ?, worker_id = '', lease_until = 0, rank = -1, number = (
  SELECT max(max(number), 0) + 1 FROM queue
)
WHERE number = ?;

-- name: abandon_lease
UPDATE queue SET lease_until = ?
WHERE work_id = ? AND epoch = ? AND worker_id = ? AND lease_until <= ? AND status = 'leased';

-- name: leases_of_worker
SELECT work_id, epoch FROM queue WHERE number < 0 AND worker_id = ?;

-- name: leases_until
SELECT work_id, epoch FROM queue WHERE number < 0 AND worker_id = ? AND lease_until = ?;

-- name: release_lease
UPDATE queue
SET status = 'queued', worker_id = '', lease_until = 0, rank = -1, attempts = attempts - 1,
  available_at = min(available_at, ?),
  number = (SELECT max(max(number), 0) + 1 FROM queue)
WHERE work_id = ? AND epoch = ? AND status = 'leased';

-- name: age_work
UPDATE queue SET priority = priority + 1
WHERE status = 'queued' AND available_at <= ?1 AND created_at <= ?2 AND priority < (
  SELECT max(q.priority) FROM queue AS q WHERE q.status = 'queued' AND q.pool = queue.pool
);

-- name: next_times
SELECT min(at) FROM timer WHERE at > ?1
UNION ALL SELECT min(lease_until) FROM queue WHERE number < 0 AND lease_until > ?1
UNION ALL SELECT min(available_at) FROM queue WHERE status = 'queued' AND available_at > 0 AND available_at > ?1;

-- name: expire_leases
-- A range of the index, see remove_work_of.
UPDATE queue SET lease_until = ?1
WHERE work_id > ?2 || ':' AND work_id < ?2 || char(59) AND status = 'leased';

-- name: held_work
SELECT work_id, attempts, lease_until FROM queue WHERE number < 0 AND worker_id = ? ORDER BY epoch, work_id LIMIT 200;

-- name: queue_depths
SELECT
  pool, requires, sum(status = 'queued'), sum(status = 'leased'), sum(status = 'dead'),
  min(CASE status WHEN 'queued' THEN created_at END)
FROM queue GROUP BY pool, requires ORDER BY pool, requires;

-- name: queue_flows
SELECT pool, priority, flow, count(*), min(created_at) FROM queue WHERE status = 'queued'
GROUP BY pool, priority, flow ORDER BY pool, priority DESC, flow;

-- name: parked
SELECT path, sum(json_extract(projection, '$.parked')) FROM execution
WHERE status IN ('pending', 'running', 'waiting', 'paused') AND json_extract(projection, '$.parked') IS NOT NULL
GROUP BY path;

-- name: limits
SELECT slot, sum(queued = 0), sum(queued), min(CASE queued WHEN 1 THEN started_at END) FROM (
  SELECT slot, queued, started_at FROM execution WHERE slot IS NOT NULL
  UNION ALL SELECT above, queued, started_at FROM execution WHERE above IS NOT NULL
) GROUP BY slot ORDER BY slot;

-- name: work_ahead
-- A range of the index, see remove_work_of.
SELECT w.work_id, w.limits, (
  SELECT count(*) FROM queue AS q WHERE q.status = 'queued' AND q.available_at = 0 AND q.pool = w.pool
    AND (q.priority > w.priority OR (q.priority = w.priority AND (q.rank, q.place) < (w.rank, w.place)))
)
FROM queue AS w WHERE w.work_id > ?1 || ':' AND w.work_id < ?1 || char(59) AND w.status = 'queued';

-- name: place_in_line
SELECT x.slot, (
  SELECT count(*) FROM execution AS y WHERE y.slot = x.slot AND y.queued = 1 AND y.number <= x.number
)
FROM execution AS x WHERE x.execution_id = ? AND x.queued = 1;

-- name: list_logs
SELECT writer_seq, execution_id FROM event_log WHERE writer_seq > ? AND seq = size ORDER BY writer_seq LIMIT ?;

-- name: work_of
-- A range of the index, see remove_work_of.
SELECT created_at, work, status FROM queue WHERE work_id > ?1 || ':' AND work_id < ?1 || char(59) ORDER BY place;

-- name: timers_of
SELECT timer_id, at FROM timer WHERE execution_id = ? ORDER BY timer_id;

-- name: messages_of
SELECT execution_id, message FROM message WHERE execution_id = ? ORDER BY number;

-- name: list_open
-- The index of the status finds open executions; ended ones are not read.
SELECT x.number, x.execution_id, x.status NOT IN ('waiting', 'paused') AND x.queued = 0
  AND NOT EXISTS (
    SELECT 1 FROM queue AS q WHERE q.work_id > x.execution_id || ':' AND q.work_id < x.execution_id || char(59)
  )
  AND NOT EXISTS (SELECT 1 FROM timer AS t WHERE t.execution_id = x.execution_id)
  AND NOT EXISTS (SELECT 1 FROM message AS m WHERE m.execution_id = x.execution_id)
FROM execution AS x
WHERE (
    x.status IN ('pending', 'running', 'waiting', 'paused')
    OR x.execution_id IN (SELECT execution_id FROM dlq WHERE status = 'replaying')
  ) AND x.number > ?1 AND x.started_at <= ?2
ORDER BY x.number LIMIT ?3;

-- name: take_duty
INSERT INTO duty (name, holder, until) VALUES (?1, ?2, ?4)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
WHERE duty.holder = excluded.holder OR duty.until <= ?3;

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
UPDATE counter SET value = max(value, ?) WHERE name = 'epoch';

-- name: skip_epochs
UPDATE counter SET value = value + ?, holder = '' WHERE name = 'epoch';

-- name: set_timer
INSERT INTO timer (execution_id, timer_id, at) VALUES (?, ?, ?)
ON CONFLICT (execution_id, timer_id) DO UPDATE SET at = excluded.at;

-- name: clear_timer
DELETE FROM timer WHERE execution_id = ? AND timer_id = ?;

-- name: due_timers
-- Timers of civil time are due by another clock than those of durations.
SELECT execution_id, timer_id, at FROM timer
WHERE at <= max(?1, ?3) AND at <= CASE WHEN timer_id >= 'until:' AND timer_id < 'until;' THEN ?3 ELSE ?1 END
ORDER BY at LIMIT ?2;

-- name: read_clock
SELECT value, holder FROM counter WHERE name = 'clock';

-- name: put_clock
INSERT INTO counter (name, value, holder) VALUES ('clock', ?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value, holder = excluded.holder;

-- name: has_no_deadline
SELECT
  NOT EXISTS (SELECT 1 FROM queue)
  AND NOT EXISTS (SELECT 1 FROM timer WHERE timer_id < 'until:' OR timer_id >= 'until;')
  AND NOT EXISTS (SELECT 1 FROM outbox WHERE state = 'pending');

-- name: last_events
SELECT events FROM event_log WHERE size > 0 ORDER BY writer_seq DESC LIMIT 1;

-- name: shorten_leases
UPDATE queue SET lease_until = min(lease_until, ?) WHERE number < 0;

-- name: end_duties
DELETE FROM duty;

-- name: put_message
INSERT INTO message (message_id, execution_id, message) VALUES (?, ?, ?) ON CONFLICT (message_id) DO NOTHING;

-- name: find_message
SELECT 1 FROM message WHERE message_id = ?;

-- name: remove_message
DELETE FROM message WHERE message_id = ?;

-- name: read_messages
SELECT execution_id, message FROM message ORDER BY number LIMIT ?;

-- name: put_snapshot
INSERT INTO snapshot (execution_id, seq, version, state) VALUES (?, ?, ?, ?)
ON CONFLICT (execution_id) DO UPDATE SET seq = excluded.seq, version = excluded.version, state = excluded.state
WHERE excluded.seq >= snapshot.seq OR excluded.version <> snapshot.version;

-- name: find_snapshot
SELECT seq, state FROM snapshot WHERE execution_id = ? AND version = ?;

-- name: put_playbook
INSERT INTO playbook (playbook, canonical) VALUES (?, ?) ON CONFLICT (playbook) DO NOTHING;

-- name: find_canonical
SELECT canonical FROM playbook WHERE playbook = ?;

-- name: list_canonicals
SELECT playbook, canonical FROM playbook WHERE playbook IN (SELECT value FROM json_each(?));

-- name: put_version
INSERT INTO catalog (path, version, playbook, content, registered_at, withdrawn) VALUES (?, ?, ?, ?, ?, 0);

-- name: last_version
SELECT version, playbook, content, withdrawn FROM catalog WHERE path = ? ORDER BY version DESC LIMIT 1;

-- name: find_version
SELECT path, version, playbook, content, registered_at FROM catalog
WHERE path = ?1 AND (?2 IS NULL OR version = ?2) AND NOT withdrawn ORDER BY version DESC LIMIT 1;

-- name: find_content_hash
SELECT playbook FROM catalog
WHERE path = ?1 AND (?2 IS NULL OR version = ?2) AND NOT withdrawn ORDER BY version DESC LIMIT 1;

-- name: list_versions
SELECT path, version, playbook, registered_at FROM catalog WHERE path = ? AND NOT withdrawn ORDER BY version DESC;

-- name: list_entries
-- SQLite returns the other columns from the row of max().
SELECT path, max(version), playbook, registered_at, count(*) FROM catalog
WHERE NOT withdrawn AND path > ?2 AND (?1 IS NULL OR instr(lower(path), lower(?1)) > 0)
  AND (?4 IS NULL OR EXISTS (SELECT 1 FROM (SELECT value FROM json_each(?4)) WHERE substr(path, 1, length(value)) = value))
GROUP BY path ORDER BY path LIMIT ?3;

-- name: withdraw
UPDATE catalog SET withdrawn = 1, content = x'' WHERE path = ?1 AND (?2 IS NULL OR version = ?2) AND NOT withdrawn;

-- name: put_result
INSERT INTO result (ref, data, meta) VALUES (?, ?, ?)
ON CONFLICT (ref) DO UPDATE SET data = excluded.data, meta = excluded.meta;

-- name: put_empty_result
INSERT INTO result (ref, meta, data) VALUES (?, ?, zeroblob(?));

-- name: find_result
SELECT rowid FROM result WHERE ref = ?;

-- name: read_result_meta
SELECT meta FROM result WHERE ref = ?;

-- name: list_results
SELECT ref, meta FROM result WHERE ref > ? ORDER BY ref LIMIT ?;

-- name: remove_result
DELETE FROM result WHERE ref = ?;

-- name: put_worker
INSERT INTO runtime (
  worker_id, pool, tags, capacity, active, status, host, version, registered_at, last_heartbeat, credentials
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (worker_id) DO UPDATE
SET pool = excluded.pool, tags = excluded.tags, capacity = excluded.capacity, active = excluded.active,
  status = excluded.status, host = excluded.host, version = excluded.version, registered_at = excluded.registered_at,
  last_heartbeat = excluded.last_heartbeat, credentials = excluded.credentials;

-- name: note_worker
UPDATE runtime SET last_heartbeat = max(last_heartbeat, ?), active = ? WHERE worker_id = ? RETURNING status;

-- name: set_worker_status
UPDATE runtime SET status = ? WHERE worker_id = ?;

-- name: leave_worker
UPDATE runtime SET status = 'gone' WHERE worker_id = ? AND registered_at = ?;

-- name: remove_silent_workers
DELETE FROM runtime WHERE last_heartbeat < ?;

-- name: remove_worker
DELETE FROM runtime WHERE worker_id = ?;

-- name: list_workers
SELECT worker_id, pool, tags, capacity, active, status, host, version, registered_at, last_heartbeat, credentials
FROM runtime ORDER BY worker_id;

-- name: put_token
INSERT INTO token (token_id, digest, role, name, created_at, created_by, expires_at, revoked_at, used_at, pool, namespaces)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: find_token
SELECT token_id, digest, role, name, created_at, created_by, expires_at, revoked_at, used_at, pool, namespaces FROM token
WHERE digest = ?;

-- name: list_tokens
SELECT token_id, digest, role, name, created_at, created_by, expires_at, revoked_at, used_at, pool, namespaces FROM token
ORDER BY created_at, token_id;

-- name: valid_tokens
SELECT token_id FROM token
WHERE token_id IN (SELECT value FROM json_each(?)) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?);

-- name: revoke_token
UPDATE token SET revoked_at = ? WHERE token_id = ? AND revoked_at IS NULL;

-- name: note_token
UPDATE token SET used_at = max(coalesce(used_at, 0), ?) WHERE token_id = ?;

-- name: put_credential
INSERT INTO credential (name, kind, sealed, about, version, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?5)
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, sealed = excluded.sealed, about = excluded.about, version = credential.version + 1,
  updated_at = excluded.updated_at
RETURNING version;

-- name: find_credential
SELECT name, kind, sealed, about, version, created_at, updated_at FROM credential WHERE name = ?;

-- name: list_credentials
SELECT name, kind, about, version, created_at, updated_at FROM credential ORDER BY name;

-- name: known_credentials
SELECT name FROM credential WHERE name IN (SELECT value FROM json_each(?));

-- name: remove_credential
DELETE FROM credential WHERE name = ? RETURNING version;

-- name: list_data_keys
SELECT key_id, wrapped, created_at FROM data_key ORDER BY created_at DESC, key_id;

-- name: add_data_key
INSERT INTO data_key (key_id, wrapped, created_at) VALUES (?, ?, ?);

-- name: rewrap_data_key
UPDATE data_key SET wrapped = ?3 WHERE key_id = ?1 AND wrapped = ?2;

-- name: find_access_token
SELECT sealed, expires_at, version FROM access_token WHERE key = ?;

-- name: claim_access_token
INSERT INTO access_token (key, sealed, expires_at, version, holder, held_until) VALUES (?1, NULL, ?5, 0, ?2, ?5)
ON CONFLICT (key) DO UPDATE SET holder = ?2, held_until = ?5
WHERE version = ?3 AND (holder IS NULL OR holder = ?2 OR held_until <= ?4);

-- name: keep_access_token
UPDATE access_token
SET sealed = coalesce(?3, sealed), expires_at = CASE WHEN ?3 IS NULL THEN expires_at ELSE ?4 END,
  version = version + (?3 IS NOT NULL), holder = NULL
WHERE key = ?1 AND holder = ?2;

-- name: forget_access_tokens
DELETE FROM access_token WHERE expires_at < ? AND held_until < ?;

-- name: put_audit
INSERT INTO audit (
  number, at, actor, action, entity, detail, before, after, digest, position, previous, hash
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: find_audit_head
-- With the highest number ever used, also after rows were deleted.
SELECT h.position, h.hash, (SELECT seq FROM sqlite_sequence WHERE name = 'audit')
FROM (SELECT 1) LEFT JOIN audit_head AS h ON h.one = 1;

-- name: set_audit_head
INSERT INTO audit_head (one, position, hash) VALUES (1, ?1, ?2)
ON CONFLICT (one) DO UPDATE SET position = excluded.position, hash = excluded.hash;

-- name: list_audit_chain
SELECT number, at, actor, action, entity, detail, before, after, digest, position, previous, hash FROM audit
WHERE position > ?1 ORDER BY position LIMIT ?2;

-- name: list_unlinked_audit
SELECT number, at, actor, action, entity, detail, before, after, digest, position, previous, hash FROM audit
WHERE position IS NULL AND number > ?1 ORDER BY number LIMIT ?2;

-- name: list_audit
SELECT number, at, actor, action, entity, detail, before, after, digest, position, previous, hash FROM audit
WHERE (?1 IS NULL OR actor = ?1) AND (?2 IS NULL OR entity = ?2) AND (?3 IS NULL OR number < ?3)
ORDER BY number DESC LIMIT ?4;

-- name: keep_key
-- The first execution of a key stays until the key expires.
INSERT INTO request_key AS known (key, execution_id, at) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET
  execution_id = CASE WHEN known.at < ?4 THEN excluded.execution_id ELSE known.execution_id END,
  at = CASE WHEN known.at < ?4 THEN excluded.at ELSE known.at END
RETURNING execution_id;

-- name: forget_keys
DELETE FROM request_key WHERE at < ?1;

-- name: remove_keys_of
DELETE FROM request_key WHERE execution_id = ?;

-- name: put_outbox
INSERT INTO outbox (key, topic, target, address, payload, headers, auth, execution_id, available_at, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING;

-- name: number_of_outbox
SELECT number FROM outbox WHERE key = ?;

-- name: due_outbox
SELECT 1 FROM outbox WHERE state = 'pending' AND available_at <= ? LIMIT 1;

-- name: claim_outbox
UPDATE outbox SET attempts = attempts + 1, available_at = ?2 WHERE number IN (
  SELECT number FROM outbox WHERE state = 'pending' AND available_at <= ?1 ORDER BY available_at, number LIMIT ?3
)
RETURNING
  number, key, topic, target, address, payload, headers, auth, execution_id, state, attempts, available_at, created_at,
  delivered_at, error;

-- name: deliver_outbox
UPDATE outbox SET state = 'delivered', delivered_at = ?3, error = ''
WHERE number = ?1 AND attempts = ?2 AND state = 'pending';

-- name: fail_outbox
UPDATE outbox SET state = ?3, available_at = coalesce(?4, available_at), error = ?5
WHERE number = ?1 AND attempts = ?2 AND state = 'pending';

-- name: find_outbox
SELECT
  number, key, topic, target, address, payload, headers, auth, execution_id, state, attempts, available_at, created_at,
  delivered_at, error
FROM outbox WHERE number = ?;

-- name: list_outbox
SELECT
  number, key, topic, target, address, payload, headers, auth, execution_id, state, attempts, available_at, created_at,
  delivered_at, error
FROM outbox WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR number < ?2) ORDER BY number DESC LIMIT ?3;

-- name: retry_outbox
UPDATE outbox SET state = 'pending', attempts = 0, available_at = ?2 WHERE number = ?1 AND state IN ('pending', 'dead');

-- name: discard_outbox
UPDATE outbox SET state = 'discarded', error = ?2 WHERE number = ?1 AND state IN ('pending', 'dead');

-- name: count_outbox
SELECT
  (SELECT count(*) FROM outbox WHERE state = 'pending'), (SELECT count(*) FROM outbox WHERE state = 'dead'),
  (SELECT min(available_at) FROM outbox WHERE state = 'pending');

-- name: forget_outbox
DELETE FROM outbox WHERE state IN ('delivered', 'discarded') AND coalesce(delivered_at, created_at) < ?;

-- name: put_letter
INSERT INTO dlq (
  message_id, execution_id, step_id, run_id, reason, attempts, last_error, fingerprint, first_seen, last_seen, path,
  loop_index, loop_key, task, tool_kind, sink_id, replays, last_stack, payload, context_excerpt, error, status, closed_at,
  closed_by, note
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (message_id) DO UPDATE SET
  step_id = excluded.step_id, run_id = excluded.run_id, reason = excluded.reason, attempts = excluded.attempts,
  last_error = excluded.last_error, fingerprint = excluded.fingerprint, first_seen = excluded.first_seen,
  last_seen = excluded.last_seen, path = excluded.path, loop_index = excluded.loop_index, loop_key =
  excluded.loop_key, task = excluded.task, tool_kind = excluded.tool_kind, sink_id = excluded.sink_id, replays =
  excluded.replays, last_stack = excluded.last_stack, payload = excluded.payload, context_excerpt =
  excluded.context_excerpt, error = excluded.error, status = excluded.status, closed_at = excluded.closed_at,
  closed_by = excluded.closed_by, note = excluded.note;

-- name: close_letter
UPDATE dlq SET status = ?, closed_at = ?, closed_by = ?, note = ? WHERE message_id = ?;

-- name: prune_letters
DELETE FROM dlq WHERE closed_at < ?;

-- name: remove_letters_of
DELETE FROM dlq WHERE execution_id = ?;

-- name: empty_letters
-- Messages of subscriptions are not in the log.
DELETE FROM dlq WHERE tool_kind IS NOT 'subscription';

-- name: find_letter
SELECT
  message_id, execution_id, step_id, run_id, reason, attempts, last_error, fingerprint, first_seen, last_seen, path,
  loop_index, loop_key, task, tool_kind, sink_id, replays, last_stack, payload, context_excerpt, error, status, closed_at,
  closed_by, note
FROM dlq WHERE message_id = ?;

-- name: list_letters
-- Conditions are added behind the first one.
SELECT
  message_id, execution_id, step_id, run_id, reason, attempts, last_error, fingerprint, first_seen, last_seen, path,
  loop_index, loop_key, task, tool_kind, sink_id, replays, last_stack, payload, context_excerpt, error, status, closed_at,
  closed_by, note
FROM dlq WHERE attempts > -1 ORDER BY last_seen DESC, message_id DESC LIMIT ?;

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
WHERE n.place = 1 ORDER BY g.count DESC, n.fingerprint LIMIT ?;

-- name: count_letters
SELECT status, count(*) FROM dlq GROUP BY status;

-- name: put_schedule
INSERT INTO schedule (
  schedule_id, path, version, owner, spec, paused, next_at, start_at, created_at, created_by, changed_at
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (schedule_id) DO NOTHING;

-- name: save_schedule
UPDATE schedule SET
  path = ?2, version = ?3, owner = ?4, spec = ?5, paused = ?6,
  next_at = ?7, start_at = ?8, created_at = ?9, created_by = ?10, changed_at = ?11, revision = revision + 1
WHERE schedule_id = ?1 AND revision = ?12;

-- name: remove_firings
DELETE FROM firing WHERE schedule_id = ?;

-- name: remove_schedule
DELETE FROM schedule WHERE schedule_id = ? RETURNING revision;

-- name: find_schedule
SELECT
  schedule_id, path, version, owner, spec, paused, next_at, start_at, created_at, created_by, changed_at,
  revision
FROM schedule WHERE schedule_id = ?1;

-- name: list_schedules
SELECT
  schedule_id, path, version, owner, spec, paused, next_at, start_at, created_at, created_by, changed_at,
  revision
FROM schedule
WHERE (?1 IS NULL OR path = ?1) AND (?2 IS NULL OR owner = ?2) AND (?3 IS NULL OR schedule_id > ?3)
  AND (?5 IS NULL OR EXISTS (SELECT 1 FROM (SELECT value FROM json_each(?5)) WHERE substr(path, 1, length(value)) = value))
ORDER BY schedule_id LIMIT ?4;

-- name: due_schedules
SELECT
  schedule_id, path, version, owner, spec, paused, next_at, start_at, created_at, created_by, changed_at,
  revision
FROM schedule WHERE NOT paused AND start_at <= ?1 ORDER BY start_at, schedule_id LIMIT ?2;

-- name: put_firing
INSERT INTO firing (
  schedule_id, at, state, execution_id, reason, detail, last_at, count, is_more, decided_at
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (schedule_id, at) DO NOTHING;

-- name: undecided_firings
SELECT schedule_id, at, state, execution_id, reason, detail, last_at, count, is_more, decided_at
FROM firing WHERE state IN ('due', 'queued') AND (schedule_id, at) > (?1, ?2)
ORDER BY schedule_id, at LIMIT ?3;

-- name: running_firings
SELECT schedule_id, at, state, execution_id, reason, detail, last_at, count, is_more, decided_at
FROM firing WHERE schedule_id = ?1 AND state = 'started' ORDER BY at;

-- name: decide_firing
UPDATE firing SET
  state = ?3, execution_id = ?4, reason = ?5, detail = ?6, last_at = ?7, count = ?8, is_more = ?9, decided_at = ?10
WHERE schedule_id = ?1 AND at = ?2 AND state IN ('due', 'queued');

-- name: ended_firings
SELECT 1 FROM firing AS f WHERE f.state = 'started' AND NOT EXISTS (
  SELECT 1 FROM execution AS e WHERE e.execution_id = f.execution_id
    AND e.status NOT IN ('completed', 'failed', 'cancelled', 'partial')
) LIMIT 1;

-- name: settle_firings
UPDATE firing AS f SET state = 'ended' WHERE f.state = 'started' AND NOT EXISTS (
  SELECT 1 FROM execution AS e WHERE e.execution_id = f.execution_id
    AND e.status NOT IN ('completed', 'failed', 'cancelled', 'partial')
);

-- name: list_firings
SELECT schedule_id, at, state, execution_id, reason, detail, last_at, count, is_more, decided_at
FROM firing WHERE schedule_id = ?1 AND (?2 IS NULL OR at < ?2) ORDER BY at DESC LIMIT ?3;

-- name: forget_firings
DELETE FROM firing WHERE at < ?1 AND decided_at < ?1 AND state NOT IN ('due', 'queued', 'started');

-- name: tally_firings
SELECT f.state, count(*), sum(f.state = 'ended' AND coalesce(e.status, '') <> 'completed') FROM firing AS f
LEFT JOIN execution AS e ON e.execution_id = f.execution_id WHERE f.schedule_id = ? GROUP BY f.state;

-- name: put_trigger
INSERT INTO playbook_trigger (
  kind, trigger_id, path, spec, version, owner, paused, created_at, created_by, changed_at
) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (kind, trigger_id) DO NOTHING;

-- name: save_trigger
UPDATE playbook_trigger SET
  path = ?3, spec = ?4, version = ?5, owner = ?6, paused = ?7,
  created_at = ?8, created_by = ?9, changed_at = ?10, revision = revision + 1
WHERE kind = ?1 AND trigger_id = ?2 AND revision = ?11;

-- name: remove_trigger
DELETE FROM playbook_trigger WHERE kind = ?1 AND trigger_id = ?2;

-- name: find_trigger
SELECT kind, trigger_id, path, spec, version, owner, paused, created_at, created_by, changed_at, revision
FROM playbook_trigger WHERE kind = ?1 AND trigger_id = ?2;

-- name: list_triggers
SELECT kind, trigger_id, path, spec, version, owner, paused, created_at, created_by, changed_at, revision
FROM playbook_trigger
WHERE kind = ?1 AND (?2 IS NULL OR path = ?2) AND (?3 IS NULL OR owner = ?3)
  AND (?4 IS NULL OR trigger_id > ?4)
ORDER BY trigger_id LIMIT ?5;

-- name: put_user
INSERT INTO person (name, disabled, data) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO NOTHING;

-- name: save_user
UPDATE person SET disabled = ?2, data = ?3 WHERE name = ?1;

-- name: remove_user
DELETE FROM person WHERE name = ?1;

-- name: find_user
SELECT data FROM person WHERE name = ?1;

-- name: list_users
SELECT data FROM person ORDER BY name;

-- name: put_group
INSERT INTO person_group (name, data) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET data = excluded.data;

-- name: remove_group
DELETE FROM person_group WHERE name = ?1;

-- name: leave_group
UPDATE person SET data = json_set(
  data, '$.groups', json((SELECT json_group_array(value) FROM json_each(data, '$.groups') WHERE value <> ?1))
) WHERE EXISTS (SELECT 1 FROM json_each(data, '$.groups') WHERE value = ?1);

-- name: list_groups
SELECT data FROM person_group ORDER BY name;

-- name: put_session
INSERT INTO person_session (digest, name, created_at, expires_at) VALUES (?1, ?2, ?3, ?4);

-- name: find_session
SELECT digest, name, created_at, expires_at FROM person_session WHERE digest = ?1;

-- name: end_session
DELETE FROM person_session WHERE digest = ?1;

-- name: end_sessions_of
DELETE FROM person_session WHERE name = ?1;

-- name: forget_sessions
DELETE FROM person_session WHERE expires_at <= ?1;

-- name: valid_sessions
SELECT s.digest, p.data FROM person_session AS s JOIN person AS p ON p.name = s.name
WHERE s.digest IN (SELECT value FROM json_each(?1)) AND s.expires_at > ?2 AND NOT p.disabled;

-- name: find_position
SELECT position, revision FROM feed_position WHERE name = ?1;

-- name: put_position
INSERT INTO feed_position AS known (name, position, revision) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET position = excluded.position, revision = excluded.revision
WHERE known.revision = ?4;

-- name: revision_of
SELECT revision FROM subscription_state WHERE state_id = ?;

-- name: find_taken
SELECT 1 FROM subscription_message WHERE state_id = ? AND message_id = ?;

-- name: put_intake
INSERT INTO subscription_state AS known VALUES (?1, ?2, ?3, ?4, ?5, coalesce(?6, ''), coalesce(?7, 0), '{}')
ON CONFLICT (state_id) DO UPDATE SET
  position = ?2, revision = ?3, received = known.received + ?4, poisoned = known.poisoned + ?5,
  last_message = coalesce(?6, known.last_message), last_at = coalesce(?7, known.last_at);

-- name: put_taken
INSERT INTO subscription_message (state_id, message_id, seen_at) VALUES (?, ?, ?);

-- name: find_progress
SELECT position, revision, received, poisoned, last_message, last_at, status FROM subscription_state WHERE state_id = ?1;

-- name: note_status
INSERT INTO subscription_state VALUES (?1, '{}', 0, 0, 0, '', 0, ?2)
ON CONFLICT (state_id) DO UPDATE SET status = excluded.status;

-- name: list_taken
SELECT message_id, seen_at FROM subscription_message
WHERE state_id = ?1 AND message_id IN (SELECT value FROM json_each(?2));

-- name: see_taken
UPDATE subscription_message SET seen_at = ?3 WHERE state_id = ?1 AND message_id IN (SELECT value FROM json_each(?2));

-- name: forget_taken
DELETE FROM subscription_message WHERE state_id = ?1 AND seen_at < ?2;

-- name: lost_states
SELECT 1 FROM subscription_state WHERE substr(state_id, 1, length(state_id) - 33) NOT IN (
  SELECT trigger_id FROM playbook_trigger WHERE kind = 'subscription'
) LIMIT 1;

-- name: prune_taken
DELETE FROM subscription_message WHERE substr(state_id, 1, length(state_id) - 33) NOT IN (
  SELECT trigger_id FROM playbook_trigger WHERE kind = 'subscription'
);

-- name: prune_states
DELETE FROM subscription_state WHERE substr(state_id, 1, length(state_id) - 33) NOT IN (
  SELECT trigger_id FROM playbook_trigger WHERE kind = 'subscription'
);
