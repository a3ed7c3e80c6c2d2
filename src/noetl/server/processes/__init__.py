"""Processes beside a server: they compute what hostile input could make slow."""
