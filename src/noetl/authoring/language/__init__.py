"""What the language knows at a place: grammar, names, descriptions."""
