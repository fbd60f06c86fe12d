"""Tensors, the tape, backward and forward mode.

Forward mode gives a tensor tangents by level and computes them with each op, from the op's own derivative: a linear
op is applied to the tangents; for any other the derivative is transposed by differentiating it. Few ops have a
forward rule of their own (``forward_derivative``). The client sees logical shapes only.
"""
