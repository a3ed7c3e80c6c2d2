"""Operations that read first: forks, dead letters, retention, schedules."""
