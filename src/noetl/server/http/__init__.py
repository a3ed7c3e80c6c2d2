"""Shared parts of HTTP routes: endpoints, guard, limits, streams, sockets."""
