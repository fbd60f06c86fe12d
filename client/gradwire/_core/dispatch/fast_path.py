"""The fast path from a call to a record, for calls with a signature that was recorded before.

The long way (:func:`.dispatch.run`) finds out what a call is, and leaves what follows from its form alone
(:mod:`.signatures`). The next call of that form looks it up, and does only what is new each time: references, the line,
the node, the proxy. It is taken while an operation is nothing but its record, and by the thread that recorded last (see
:mod:`..context.modes` and :mod:`..context.biased_lock`); else the long way is.

:func:`record_any` is for any form; :func:`record_unary` and :func:`record_binary` are the same spelled out for the most
frequent ones, since a call or a loop in between costs as much as half of what there is to do.

What is recorded is made before the turn is taken: whatever is allocated may start the collector of garbage, and that
runs destructors of the program's, which take their time or record something themselves. The end of a turn that was
taken away meanwhile is not recorded; the long way begins again.
"""

from __future__ import annotations

from sys import _getframe
from typing import TYPE_CHECKING, Any, Final

from gradwire_protocol.ops.control import GRAD_MODE

from ..context.biased_lock import NOBODY
from ..context.call_sites import INSIDE, user_line
from ..graph.graph_mirror import Node, edge_of, next_seq
from ..tensor.tensor import Tensor
from .signatures import BOTH, LEFT, RIGHT, Signature

if TYPE_CHECKING:
    from ..session.session import Session

_new = object.__new__

NOT_APPLICABLE: Final = object()
"""What the fast path returns where it cannot be taken after all."""


def record_any(signature: Signature, session: Session, values: list[Any], key: int) -> Any:
    """Record an op on bound values. ``key`` is that of the caller's modes."""
    edges: Any = ()
    recorded = False
    if key & GRAD_MODE and signature.recorded:
        found = []
        for value in signature.receivers(values) if signature.lists else [values[i] for i in signature.differentiable]:
            edge = None
            if isinstance(value, Tensor):
                before = value._node
                if value._base_tensor is not None:
                    if before is not None:
                        edge = edge_of(value)
                    elif value.requires_grad:
                        return NOT_APPLICABLE
                elif before is not None:
                    edge = (before, value._slot)
                elif value._requires:
                    edge = edge_of(value)
                recorded |= edge is not None
            found.append(edge)
        edges = tuple(found)
    saved: Any = ()
    if recorded:  # before the record: what was made in inference mode is refused
        kept = signature.kept or signature.keeping.places(edges, signature.recipe)
        if kept[0]:
            saved = signature.keeping.held(kept, values)
    line = user_line()
    count = len(signature.visible)
    results: list[Any] = [_new(Tensor) for _ in range(count)]
    args = signature.template.copy()
    for i in signature.lists:
        values[i] = list(values[i])
        args[i] = [None] * len(values[i])
    record = [signature.name, args, count] if signature.counted else [signature.name, args]
    numbers = [values[i] for i in signature.numbers]
    builder = session.builder
    lock = builder.lock
    if lock.ready != key:
        return NOT_APPLICABLE
    lock.busy = True
    try:
        if lock.ready != key or len(builder.records) >= builder.limit or signature.largest > session.max_tensor_bytes:
            lock.busy = False
            return NOT_APPLICABLE
        first = builder.first
        for i in signature.references:
            x = values[i]
            number = x._id
            at = number - first
            if at < 0:
                if x._session is not session or number < 0:
                    lock.busy = False
                    return NOT_APPLICABLE
                table = builder.external
                known = table.get(number)
                if known is None:
                    known = table[number] = len(table)
                at = -1 - known
            elif x._session is not session:
                lock.busy = False
                return NOT_APPLICABLE
            args[i] = at
        for i in signature.lists:
            references = args[i]
            for place, x in enumerate(values[i]):
                if x is None:
                    continue
                if x._session is not session or x._id < 0:
                    lock.busy = False
                    return NOT_APPLICABLE
                references[place] = builder.reference(x)
        if not lock.busy:
            return NOT_APPLICABLE
        builder.scalars += numbers
        builder.records.append(record)
        builder.lines.append(line)
        number = builder.next_id
        builder.next_id = number + count
        for made in results:
            made._id = number
            made._session = session  # from here on it is released when it goes
            number += 1
    except BaseException:
        lock.broken = True
        lock.ready = lock.joins = NOBODY
        lock.busy = False
        raise
    lock.busy = False
    if not builder.watched:
        builder.stir()
    node: Node | None = None
    if recorded:
        node = _new(Node)
        node.signature = signature.node
        node.edges = edges
        node.line = line
        node.saved = node.numbers = ()
        node.part = node.inner = node.retained = None
        node.seq = next_seq()
    for slot, out in enumerate(signature.visible):
        made = results[slot]
        made._meta = out
        made._base_tensor = made._versions = None
        if recorded and slot in signature.floating:
            made._node, made._slot = node, slot
        else:
            made._node, made._slot = None, 0
        if signature.view:
            made._view_of(values[0], signature.with_history, signature.counted, bool(key & GRAD_MODE))
    if node is not None:
        keeping = signature.keeping
        node.saved = saved
        if keeping.numbers:
            keeping.keep_numbers(node, values)
        if kept[1]:
            keeping.keep_results(node, kept, results)
    return results[0] if signature.alone else tuple(results)


def record_unary(signature: Signature, session: Session, x: Any, key: int) -> Any:
    """The same for an op of one tensor, all of whose other arguments are part of its form."""
    edge: Any = None
    if key & GRAD_MODE and signature.recorded:
        node = x._node
        if x._base_tensor is not None:
            if node is not None:
                edge = edge_of(x)
            elif x.requires_grad:
                return NOT_APPLICABLE
        elif node is not None:
            edge = (node, x._slot)
        elif x._requires:
            edge = edge_of(x)
    frame = _getframe(2)
    code = frame.f_code
    try:
        while INSIDE[code.co_filename]:
            frame = frame.f_back  # type: ignore[assignment]
            code = frame.f_code
        line = (code, frame.f_lasti)
    except AttributeError:  # the outermost frame is gradwire's own
        line = user_line()
    made: Any = _new(Tensor)
    args = signature.template.copy()
    record = [signature.name, args]
    builder = session.builder
    lock = builder.lock
    if lock.ready != key:
        return NOT_APPLICABLE
    lock.busy = True
    try:
        ops = builder.records
        if lock.ready != key or len(ops) >= builder.limit or signature.largest > session.max_tensor_bytes:
            lock.busy = False
            return NOT_APPLICABLE
        name = x._id
        at = name - builder.first
        if at < 0:
            table = builder.external
            known = table.get(name)
            if known is None:
                if name < 0:
                    lock.busy = False
                    return NOT_APPLICABLE
                known = table[name] = len(table)
            at = -1 - known
        args[0] = at
        if not lock.busy:
            return NOT_APPLICABLE
        ops.append(record)
        builder.lines.append(line)
        name = builder.next_id
        builder.next_id = name + 1
        made._session = session
        made._id = name
    except BaseException:
        lock.broken = True
        lock.ready = lock.joins = NOBODY
        lock.busy = False
        raise
    lock.busy = False
    if not builder.watched:
        builder.stir()
    made._meta = signature.out
    made._slot = 0
    made._base_tensor = made._versions = None
    if edge is None:
        made._node = None
        if signature.view:
            made._view_of(x, signature.with_history, False, bool(key & GRAD_MODE))
        return made
    made._node = node = _new(Node)
    node.signature = signature.node
    node.edges = edges = (edge,)
    node.line = line
    node.numbers = ()
    node.part = node.inner = node.retained = None
    node.seq = next_seq()
    keeping = signature.keeping
    kept = signature.kept or keeping.places(edges, signature.recipe)
    if kept[0]:
        cell = x._versions or x._cell()
        node.saved = ((cell, cell[0], 0, x._id, x._meta),)
    else:
        node.saved = ()
    if signature.view:
        made._view_of(x, True, False, True)
    if kept[1]:
        if kept[1] == LEFT and made._versions is None:  # most functions keep their one result
            made._versions = cell = [0]
            node.saved = (*node.saved, (cell, 0, -1, name, signature.out))
        else:
            keeping.keep_results(node, kept, (made,))
    return made


def record_binary(signature: Signature, session: Session, x: Any, y: Any, key: int) -> Any:
    """The same for an op of two operands, of which the second may be a number, and defaults."""
    edges: Any = None
    left: Any = None
    right: Any = None
    number = not signature.both
    if key & GRAD_MODE and signature.recorded:
        node = x._node
        if x._base_tensor is not None:
            if node is not None:
                left = edge_of(x)
            elif x.requires_grad:
                return NOT_APPLICABLE
        elif node is not None:
            left = (node, x._slot)
        elif x._requires:
            left = edge_of(x)
        if number:
            if left is not None:
                edges = (left, None)
        else:
            node = y._node
            if y._base_tensor is not None:
                if node is not None:
                    right = edge_of(y)
                elif y.requires_grad:
                    return NOT_APPLICABLE
            elif node is not None:
                right = (node, y._slot)
            elif y._requires:
                right = edge_of(y)
            if left is not None or right is not None:
                edges = (left, right)
    saved: Any = ()
    if edges is not None:  # before the record: what was made in inference mode is refused
        kept = signature.kept
        if kept is None:  # it was worked out before, or is now
            recipe = signature.recipe
            kept = recipe.kept.get((left is None) + 2 * (right is None)) or signature.keeping.places(edges, recipe)
        places = kept[0]
        if places == BOTH and not number:
            cell, other = x._versions or x._kept_cell(), y._versions or y._kept_cell()
            saved = ((cell, cell[0], 0, x._id, x._meta), (other, other[0], 1, y._id, y._meta))
        elif places == LEFT:
            cell = x._versions or x._kept_cell()
            saved = ((cell, cell[0], 0, x._id, x._meta),)
        elif places == RIGHT and not number:
            cell = y._versions or y._kept_cell()
            saved = ((cell, cell[0], 1, y._id, y._meta),)
        elif places:
            saved = signature.keeping.held(kept, [x, y])
    frame = _getframe(2)
    code = frame.f_code
    try:
        while INSIDE[code.co_filename]:
            frame = frame.f_back  # type: ignore[assignment]
            code = frame.f_code
        line = (code, frame.f_lasti)
    except AttributeError:  # the outermost frame is gradwire's own
        line = user_line()
    made: Any = _new(Tensor)
    args: Any = [0, signature.kind] if number else [0, 0]
    record = [signature.name, args]
    builder = session.builder
    lock = builder.lock
    if lock.ready != key:
        return NOT_APPLICABLE
    lock.busy = True
    try:
        ops = builder.records
        if lock.ready != key or len(ops) >= builder.limit or signature.largest > session.max_tensor_bytes:
            lock.busy = False
            return NOT_APPLICABLE
        first = builder.first
        name = x._id
        at = name - first
        if at < 0:
            table = builder.external
            known = table.get(name)
            if known is None:
                if name < 0:
                    lock.busy = False
                    return NOT_APPLICABLE
                known = table[name] = len(table)
            at = -1 - known
        args[0] = at
        if not number:
            if y._session is not session:
                lock.busy = False
                return NOT_APPLICABLE
            name = y._id
            beside = name - first
            if beside < 0:
                table = builder.external
                known = table.get(name)
                if known is None:
                    if name < 0:
                        lock.busy = False
                        return NOT_APPLICABLE
                    known = table[name] = len(table)
                beside = -1 - known
            args[1] = beside
        if not lock.busy:
            return NOT_APPLICABLE
        if number:
            builder.scalars.append(y)
        ops.append(record)
        builder.lines.append(line)
        name = builder.next_id
        builder.next_id = name + 1
        made._session = session
        made._id = name
    except BaseException:
        lock.broken = True
        lock.ready = lock.joins = NOBODY
        lock.busy = False
        raise
    lock.busy = False
    if not builder.watched:
        builder.stir()
    made._meta = signature.out
    made._slot = 0
    made._base_tensor = made._versions = None
    if edges is None:
        made._node = None
        return made
    made._node = node = _new(Node)
    node.signature = signature.node
    node.edges = edges
    node.line = line
    node.numbers = ()
    node.part = node.inner = node.retained = None
    node.seq = next_seq()
    node.saved = saved
    if signature.asked is not None:
        node.numbers = signature.asked
    elif asked := signature.keeping.numbers:
        if asked == RIGHT:
            node.numbers = (y if number else None,)
        else:
            signature.keeping.keep_numbers(node, [x, y, *signature.entry.defaults[2:]])
    if kept[1]:
        signature.keeping.keep_results(node, kept, (made,))
    return made
