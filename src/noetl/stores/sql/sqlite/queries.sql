-- Every statement that the SQLite store runs, by name. Times come in as parameters.

-- name: append_event
INSERT INTO event_log (
  execution_id, seq, event_id, event_type, timestamp, source, entity_type, entity_id, parent_id, step_run_id,
  task_run_id, iteration, attempt, status, duration_ms, payload, version
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: read_events
SELECT
  event_id, execution_id, seq, event_type, timestamp, source, entity_type, entity_id, parent_id, step_run_id,
  task_run_id, iteration, attempt, status, duration_ms, payload, version
FROM event_log WHERE execution_id = ? AND seq > ? ORDER BY seq LIMIT ?;

-- name: has_event
SELECT 1 FROM event_log WHERE execution_id = ? AND event_id = ?;

-- name: last_seq
SELECT last_seq FROM execution WHERE execution_id = ?;

-- name: put_execution
INSERT INTO execution (execution_id, last_seq, status, projection) VALUES (?, ?, ?, ?)
ON CONFLICT (execution_id) DO UPDATE
SET last_seq = excluded.last_seq, status = excluded.status, projection = excluded.projection;

-- name: set_last_seq
INSERT INTO execution (execution_id, last_seq, status, projection) VALUES (?, ?, 'pending', '{}')
ON CONFLICT (execution_id) DO UPDATE SET last_seq = excluded.last_seq;

-- name: find_execution
SELECT execution_id, last_seq, projection FROM execution WHERE execution_id = ?;

-- name: list_executions
SELECT execution_id, last_seq, projection FROM execution
WHERE (?1 IS NULL OR status = ?1)
  AND (?2 IS NULL OR number < (SELECT number FROM execution WHERE execution_id = ?2))
ORDER BY number DESC LIMIT ?3;

-- name: lease_of
SELECT epoch FROM queue WHERE work_id = ? AND state = 'leased';

-- name: put_work
INSERT INTO queue (
  work_id, execution_id, run_id, chunk, pool, priority, available_at, state, epoch, attempt, worker, lease_until, work
) VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', 0, 0, '', 0, ?)
ON CONFLICT (work_id) DO UPDATE
SET pool = excluded.pool, priority = excluded.priority, available_at = excluded.available_at, work = excluded.work;

-- name: remove_work
DELETE FROM queue WHERE work_id = ?;

-- name: find_work
SELECT priority, number, attempt, work FROM queue
WHERE pool = ? AND state = 'queued' AND available_at <= ? ORDER BY priority DESC, number LIMIT ?;

-- name: next_epochs
UPDATE counter SET value = value + ? WHERE name = 'epoch' RETURNING value;

-- name: lease_work
UPDATE queue SET state = 'leased', epoch = ?, attempt = attempt + 1, worker = ?, lease_until = ? WHERE number = ?;

-- name: extend_lease
UPDATE queue SET lease_until = max(lease_until, ?) WHERE work_id = ? AND epoch = ? AND worker = ? AND state = 'leased';

-- name: expired_leases
SELECT number, epoch, attempt, worker, lease_until, work FROM queue
WHERE state = 'leased' AND lease_until <= ? ORDER BY lease_until, number;

-- name: take_lease_back
UPDATE queue SET state = ?, worker = '', lease_until = 0 WHERE number = ?;

-- name: release_lease
UPDATE queue SET state = 'queued', worker = '', lease_until = 0, attempt = attempt - 1, available_at = min(available_at, ?)
WHERE work_id = ? AND epoch = ? AND state = 'leased';

-- name: next_times
SELECT min(at) FROM timer WHERE at > ?1
UNION ALL SELECT min(lease_until) FROM queue WHERE state = 'leased' AND lease_until > ?1
UNION ALL SELECT min(available_at) FROM queue WHERE state = 'queued' AND available_at > 0 AND available_at > ?1;

-- name: expire_leases
-- Work ids begin with their execution and a colon, so its work is a range of the index; the semicolon comes after the colon.
UPDATE queue SET lease_until = min(lease_until, ?1)
WHERE work_id > ?2 || ':' AND work_id < ?2 || char(59) AND state = 'leased';

-- name: set_timer
INSERT INTO timer (execution_id, timer_id, at) VALUES (?, ?, ?)
ON CONFLICT (execution_id, timer_id) DO UPDATE SET at = excluded.at;

-- name: clear_timer
DELETE FROM timer WHERE execution_id = ? AND timer_id = ?;

-- name: due_timers
SELECT execution_id, timer_id, at FROM timer WHERE at <= ? ORDER BY at LIMIT ?;

-- name: put_message
INSERT INTO message (message_id, execution_id, message) VALUES (?, ?, ?) ON CONFLICT (message_id) DO NOTHING;

-- name: has_message
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

-- name: put_version
INSERT INTO catalog (path, version, playbook, content, registered_at) VALUES (?, ?, ?, ?, ?);

-- name: find_version
SELECT path, version, playbook, content, registered_at FROM catalog
WHERE path = ?1 AND (?2 IS NULL OR version = ?2) ORDER BY version DESC LIMIT 1;

-- name: put_result
INSERT INTO result (ref, data, meta) VALUES (?, ?, ?)
ON CONFLICT (ref) DO UPDATE SET data = excluded.data, meta = excluded.meta;

-- name: read_result
SELECT coalesce(substr(data, ?, ?), x'') FROM result WHERE ref = ?;

-- name: read_result_meta
SELECT meta FROM result WHERE ref = ?;

-- name: remove_result
DELETE FROM result WHERE ref = ?;
