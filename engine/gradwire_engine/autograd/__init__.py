"""Tensors, the tape, backward and forward mode.

Each op goes through one pipeline (:mod:`.engine`). Most calls need no cast and make one new array: what their operands'
metas decide is decided once, and kept beside the rule's answer (:mod:`.plain_calls`).

Forward mode gives a tensor tangents by level and computes them with each op, from the op's own derivative: a linear
op is applied to the tangents; for any other the derivative is transposed by differentiating it. Few ops have a
forward rule of their own (``forward_derivative``). The client sees logical shapes only.
"""
