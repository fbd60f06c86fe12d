"""Drawings of what happens on the server: :func:`graph` draws the live autograd graph as SVG.

``from gradwire import viz`` and ``viz.graph(loss)``; nothing else of gradwire imports it.
"""

from .drawing import Drawing, graph

__all__ = ["Drawing", "graph"]
