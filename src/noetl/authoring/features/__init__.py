"""One module per editor feature other than completion."""
