"""Drawings of autograd graphs as SVG: by the client (``gradwire.viz``) and by the server (its console)."""
