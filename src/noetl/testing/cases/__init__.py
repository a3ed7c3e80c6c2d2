"""Tests of playbooks: test files, mocked tools, expectations, coverage."""
