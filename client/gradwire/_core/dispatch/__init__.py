"""From a call on proxies to a record in a frame.

The second call with the same signature (op, metas, kinds of numbers, other arguments) takes the fast path: everything
that follows from the signature is memoised, and only references, call site, node and proxy are new. The thread that
recorded last takes it without a lock (:mod:`..context.biased_lock`). Modes, profiles, checkpoint regions and
transforms disable the fast path; both paths leave the same state.

Modes travel as ``set_mode`` records inside a frame instead of fields of every record, so the common case costs
nothing.
"""
