"""Operations that read first: audit, forks, dead letters, retention, triggers."""
