"""Commands for operators of a store or a server: one file per command."""
