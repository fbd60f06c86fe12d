"""The methods and properties that are given to tensors from above, since they use ops.

Each is attached to the class where it is written. What type checkers see is ``attached.pyi``, derived from all of them.
"""

Attached = object
