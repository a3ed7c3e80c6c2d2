"""Operations on executions that read the log first: forks and dead letters."""
