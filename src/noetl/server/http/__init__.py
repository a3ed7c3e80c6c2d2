"""What every HTTP route shares: the endpoint declaration, the guard, limits, streams and sockets."""
