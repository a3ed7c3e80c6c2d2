"""Flow control: admission of executions that wait for a limit, ageing of work."""
