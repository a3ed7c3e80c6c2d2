"""Output for terminals, pipes and programs: progress, summaries, reports."""
