-- Invariants of a store, whatever crashed or was disconnected: none of these statements returns rows. `noetl db check --deep`
-- runs them; by hand, run `SET search_path = noetl` first. Columns: the execution, and what is wrong with it.

-- name: an execution whose log has gaps, or whose row does not end where its log does
SELECT execution_id, 'its row ends at ' || coalesce(x.last_seq, 0) || ', its log at ' || coalesce(e.last, 0)
  || ' with ' || coalesce(e.events, 0) || ' events'
FROM (SELECT execution_id, max(seq) AS last, sum(size) AS events FROM log GROUP BY execution_id) AS e
FULL JOIN execution AS x USING (execution_id)
WHERE e.last IS DISTINCT FROM x.last_seq OR e.last <> e.events;

-- name: an execution that ended twice
SELECT execution_id, 'it ended ' || count(*) || ' times' FROM event
WHERE event_type = 'playbook.finished' GROUP BY execution_id HAVING count(*) > 1;

-- name: a step-run that ended twice
SELECT execution_id, step_run_id || ' ended ' || count(*) || ' times' FROM event
WHERE event_type IN ('step.done', 'step.failed')
GROUP BY execution_id, step_run_id HAVING count(*) > 1;

-- name: a step-run that was never scheduled
SELECT e.execution_id, e.step_run_id || ' ended and was never scheduled' FROM event AS e
WHERE e.event_type IN ('step.done', 'step.failed') AND NOT EXISTS (
  SELECT FROM event AS s WHERE s.execution_id = e.execution_id AND s.step_run_id = e.step_run_id
    AND s.event_type = 'step.scheduled'
);

-- name: a step-run that was lost: its execution has ended, and it has not
SELECT s.execution_id, s.step_run_id || ' was scheduled and never ended' FROM event AS s
JOIN execution AS x ON x.execution_id = s.execution_id AND x.ended_at IS NOT NULL
WHERE s.event_type = 'step.scheduled' AND NOT EXISTS (
  SELECT FROM event AS e WHERE e.execution_id = s.execution_id AND e.step_run_id = s.step_run_id
    AND e.event_type IN ('step.done', 'step.failed')
);

-- name: an item of a loop that ended twice
SELECT execution_id, 'item ' || iteration || ' of ' || step_run_id || ' ended ' || count(*) || ' times' FROM event
WHERE event_type IN ('loop.iteration.done', 'loop.iteration.failed')
GROUP BY execution_id, step_run_id, iteration HAVING count(*) > 1;

-- name: a loop that is done without all of its items
SELECT d.execution_id, d.step_run_id || ' is done with ' || count(i.iteration) || ' of ' || d.total || ' items'
FROM (
  SELECT execution_id, step_run_id, (payload -> 'stats' ->> 'total')::bigint AS total FROM event
  WHERE event_type = 'loop.done'
) AS d
LEFT JOIN event AS i ON i.execution_id = d.execution_id AND i.step_run_id = d.step_run_id
  AND i.event_type IN ('loop.iteration.done', 'loop.iteration.failed')
GROUP BY d.execution_id, d.step_run_id, d.total HAVING count(i.iteration) <> d.total;

-- name: a timer that fired more often than it was set
SELECT execution_id, 'timer ' || entity_id || ' fired too often' FROM event
WHERE event_type IN ('timer.set', 'timer.fired') GROUP BY execution_id, entity_id
HAVING count(*) FILTER (WHERE event_type = 'timer.fired') > count(*) FILTER (WHERE event_type = 'timer.set');

-- name: a child that was started or ended twice for its parent
SELECT execution_id, event_type || ' ' || entity_id || ' is there ' || count(*) || ' times' FROM event
WHERE event_type IN ('child.started', 'child.finished') GROUP BY execution_id, event_type, entity_id
HAVING count(*) > 1;

-- name: work or a timer of an execution that has ended, or that is not there
SELECT q.execution_id, 'the work ' || q.node_id || ' is left' FROM queue AS q
LEFT JOIN execution AS x ON x.execution_id = q.execution_id WHERE x.execution_id IS NULL OR x.ended_at IS NOT NULL
UNION ALL
SELECT t.execution_id, 'the timer ' || t.timer_id || ' is left' FROM timer AS t
LEFT JOIN execution AS x ON x.execution_id = t.execution_id WHERE x.execution_id IS NULL OR x.ended_at IS NOT NULL;

-- name: a lease without a holder or an end
SELECT execution_id, 'the lease of ' || node_id || ' has no holder or no end' FROM queue
WHERE status = 'leased' AND (worker_id IS NULL OR lease_until IS NULL OR epoch = 0);

-- name: an execution that nothing can move: no work, timer, message or child of it is there, and it waits for no signal
SELECT x.execution_id, 'it is ' || x.status || ', and nothing will move it' FROM execution AS x
WHERE x.ended_at IS NULL AND x.status NOT IN ('waiting', 'paused')
  AND NOT EXISTS (
    SELECT FROM queue AS q WHERE q.node_id > x.execution_id::text || ':' AND q.node_id < x.execution_id::text || ';'
  )
  AND NOT EXISTS (SELECT FROM timer AS t WHERE t.execution_id = x.execution_id)
  AND NOT EXISTS (SELECT FROM message AS m WHERE m.execution_id = x.execution_id)
  AND NOT EXISTS (SELECT FROM execution AS c WHERE c.parent = x.execution_id::text AND c.ended_at IS NULL)
  AND NOT EXISTS (SELECT FROM message AS m WHERE m.message::text LIKE '%' || x.execution_id || '%');
