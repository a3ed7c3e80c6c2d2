"""Masks over secrets: by value in any encoding, and by name, for every reader."""
