-- Who does what only one of several processes needs to do, and until when.

CREATE TABLE duty (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  until INTEGER NOT NULL
) WITHOUT ROWID;
