"""The gradwire server: sessions, HTTP and WebSocket, keys, limits, metrics.

Start it with ``gradwire-server`` or ``python -m gradwire_server``; embed it with
:func:`gradwire_server.app.create_app`. This file imports nothing, so that the command line can tune the process
before it imports NumPy.
"""
