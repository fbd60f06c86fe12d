"""``gradwire conformance``: run the conformance vectors of the protocol against a server.

``vectors`` finds and reads the files, ``values`` has the two forms of numbers, ``matching`` compares answers with what
a vector expects, ``scripts`` speaks HTTP and WebSocket, ``groups`` turns each group into requests, and ``command`` is
the command. None of it uses the client's own connection: the subject is the server.
"""
