"""The client's mirror of the autograd graph: nodes and edges, no values.

The mirror lets the client answer questions about the graph, and refuse what PyTorch refuses, without a round trip.
:mod:`.save_policy` keeps, for every node, which memory it saved at which version; the facts come from the
derivatives. Errors that PyTorch raises during backward (a freed graph, a saved tensor changed in place) are therefore
raised at the ``backward()`` call, with the lines of all ops involved.
"""
