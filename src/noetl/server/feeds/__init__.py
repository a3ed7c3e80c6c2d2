"""Log readers for the API: followers, completion waiters, past states."""
