"""How functions treat ``out=``, the tensor that a caller brings for the result."""

from __future__ import annotations

from enum import Flag, auto


class Out(Flag):
    """What PyTorch asks of ``out``, and what becomes of it. A plain one holds what the result casts to, may share
    memory with operands, and takes another shape with a warning.

    Attributes:
        EXACT: it has the result's dtype.
        TRUTHS: it is of bools, or of uint8.
        ANY: it is of any dtype.
        COMPUTED: its dtype is the one computed in.
        MADE: its dtype and device are those of what is made.
        APART: it shares no memory with an operand.
        WHOLE: it may be an operand, but not a part of one. The default for functions that are elementwise or have an
            in-place form.
        OVERLAPPING: it may share any memory with operands, although it is such a function.
        COUNTED: with as many elements as the result it is filled in order, whatever its shape.
        SILENT: it takes another shape without a warning.
        ROW_MAJOR: with another shape it takes row-major order, whichever order the result is in.
        JOINS: a dtype that it cannot have is an error of the argument's type.
    """

    PLAIN = 0
    EXACT, TRUTHS, ANY, COMPUTED, MADE = auto(), auto(), auto(), auto(), auto()
    APART, WHOLE, OVERLAPPING = auto(), auto(), auto()
    COUNTED, SILENT, ROW_MAJOR, JOINS = auto(), auto(), auto(), auto()
