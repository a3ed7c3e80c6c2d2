"""API nouns for operators."""
