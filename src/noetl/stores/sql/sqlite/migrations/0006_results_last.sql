-- What a result holds comes last in its row: so it is written and passed over without being held whole.

ALTER TABLE result RENAME TO result_before;

CREATE TABLE result (
  ref TEXT PRIMARY KEY,
  meta TEXT NOT NULL,
  data BLOB NOT NULL -- the last one: so it is written and passed over without being held whole
);

INSERT INTO result (ref, meta, data) SELECT ref, meta, data FROM result_before;

DROP TABLE result_before;
