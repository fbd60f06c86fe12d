"""The client's side of backward: hooks, custom Functions, checkpoints, and the history of gradients.

Hooks and custom Functions are the program's Python code, so they run in the client and the server never executes
them. The mirror holds the whole graph, so the client knows at which nodes it will be called and in which order.
:mod:`.client_backward` records ``begin_backward`` with the list of these *places*, then one ``advance`` per place.
The results of an ``advance`` are the gradients there, as proxies with known shapes. The program's function computes
with them, and its results are arguments of the next ``advance``. The server suspends the backward generator between
these records (``autograd/client_callbacks.py`` of the engine). All of it is one frame: callbacks cost no round trip,
and the structure of a step that has them still repeats.

* A place is a tensor without elements that stands for a node. A custom Function gets one when it is applied, other
  nodes when a hook is registered.
* Whether a gradient exists (``None`` in hooks, zeros for Functions) follows from the graph, so the mirror knows it.
  Gradients at a pause are made row-major, so that the proxy's strides are right.
* An exception in a callback leaves ``backward()`` with its own traceback, and the client tells the server to abandon
  the run.
* ``checkpoint(use_reentrant=False)`` opens a *region*, whose nodes save nothing. When backward reaches the first of
  them, the client runs the function again, which only records. The server hands what the second run saved to the
  nodes of the first, with the edges that the operands had there, so a recorded derivative stays in the first graph. A
  gradient taken inside the function runs it again up to that place. The reentrant form is a Function whose backward
  calls backward.
* ``saved_tensors_hooks`` take saved tensors from the server's nodes when an op is recorded, and return them at a
  pause.
* With ``create_graph``, :mod:`.predicted_history` replays backward on the mirror: ``requires_grad``, edges, names and
  saved tensors of the new nodes are known without a round trip.
"""
