-- The server reads the text of a constraint anew for every insert, and only NoETL writes this table.

ALTER TABLE queue DROP CONSTRAINT queue_status_check;
