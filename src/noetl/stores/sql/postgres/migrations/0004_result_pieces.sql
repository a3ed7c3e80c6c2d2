-- Pieces of a result on their way: gone again when the transaction that brings them ends.

CREATE UNLOGGED TABLE result_piece (
  ref text NOT NULL,
  number integer NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (ref, number)
);

ALTER TABLE result_piece ALTER COLUMN data SET STORAGE EXTERNAL;
