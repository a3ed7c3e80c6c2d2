"""Wake-up signals between processes that share a store.

A lost signal only delays.
"""
