"""Audit trail as a hash chain: digests, links and their verification; pure."""
