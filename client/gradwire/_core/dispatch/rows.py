"""An op on each of many rows of operands, as on the parameters of an optimizer, by the fast path.

A row is told from others by less than a call is: by the forms of its tensors, and by the types of numbers that go to
the frame's table of scalars.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from gradwire_protocol.table import TABLE

from ..context.call_sites import user_line
from ..context.modes import MODES
from ..graph.forward_levels import OPEN
from ..graph.recorded_call import entry_of
from ..tensor.tensor import Tensor
from .dispatch import run
from .fast_path import NOT_APPLICABLE
from .signatures import Signature, key_of, known

FORMS_KEPT: Final = 4096
"""Forms of rows that are remembered, of each op."""


class RowRecorder:
    """Records one op, row by row."""

    __slots__ = ("_bind", "_entry", "_forms")

    def __init__(self, name: str) -> None:
        op = TABLE[name]
        self._entry, self._bind = entry_of(op), op.bind
        self._forms: dict[Any, Signature] = {}

    def record(self, rows: Iterable[tuple[Any, ...]]) -> list[Any]:
        """What the op returns of each row. A row has the op's arguments in order, without defaults at the end.

        Raises:
            Whatever the op's rule raises of a row; the rows before it are recorded then.
        """
        made = []
        forms, mode, line = self._forms, MODES.key, user_line()
        for row in rows:
            form = tuple([value._form if isinstance(value, Tensor) else type(value) for value in row])
            signature = forms.get(form)
            one = NOT_APPLICABLE
            if signature is not None and not OPEN:
                session = row[0]._session
                if session.lock.ready == mode:
                    one = signature.record(signature, session, mode, *row, line=line)
            made.append(self._recorded(form, row) if one is NOT_APPLICABLE else one)
        return made

    def _recorded(self, form: Any, row: tuple[Any, ...]) -> Any:
        """Record a row as a call, and remember what is known of such calls by then."""
        values = self._bind(row, {})
        made = run(self._entry, values)
        key = key_of(self._entry, values)
        signature = None if key is None else known(key)
        if signature is not None and {*signature.references, *signature.numbers} >= {*range(len(row))}:
            if len(self._forms) >= FORMS_KEPT:
                self._forms.clear()
            self._forms[form] = signature
        return made
