"""API nouns that workers use."""
