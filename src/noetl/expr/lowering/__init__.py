"""Jinja2's tree to NoETL's tree, with reads and problems."""
