"""What evaluations use: budget, lookup, operators, undefined values."""
