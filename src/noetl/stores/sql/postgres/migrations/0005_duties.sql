-- Who does what only one of several servers needs to do, and until when.

CREATE TABLE duty (
  name text PRIMARY KEY,
  holder text NOT NULL,
  until bigint NOT NULL
);
