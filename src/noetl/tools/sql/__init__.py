"""What kinds that speak SQL or move rows share."""
