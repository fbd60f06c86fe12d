"""Drawings of server state: :func:`graph` draws the live autograd graph as SVG.

Use ``from gradwire import viz`` and ``viz.graph(loss)``; no other module of gradwire imports it.
"""

from .drawing import Drawing, graph

__all__ = ["Drawing", "graph"]
