"""What all stores share: judging a batch, rows, named SQL."""
