"""What goes over the wire: the bodies of HTTP requests and answers, and the frames of a worker's session.

Structs only: whoever speaks to a server (workers, the command line, a client) and the server itself read and write these.
Unknown fields of a request are refused, so nothing can be smuggled in; of an answer they are ignored, so that an older
client reads a newer server. Tested in tests/server.
"""
