"""Tests of playbooks: files of cases, what tools are pretended to do in them, and what must come of it."""
