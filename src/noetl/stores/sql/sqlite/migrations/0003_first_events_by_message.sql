-- A message is known by its first event alone: one entry in the index for a commit, not one for each event.

DROP INDEX event_log_event;

CREATE UNIQUE INDEX event_log_message ON event_log (execution_id, event_id) WHERE substr(event_id, -2) = '.0';
