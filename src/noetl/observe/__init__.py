"""What servers and workers count, from one table of series."""
