"""One state for those that differ only in what nothing can read or do any more."""

from __future__ import annotations

from .state import DEAD_OWNER, LOAD, OLD, REPLY, UP, Files, State

NOTHING = Files()


def reduced(state: State, checked: bool) -> State:
    """The state without dead parts.

    * A takeover reads the newest published epoch, so older publications are never read, nor the files of older epochs
      but by an owner that has begun to (``LOAD``).
    * A contender asks for the end or the release of the newest claim only.
    * An owner whose lease has lapsed passes no check. When a newer epoch is published, nobody reads what it writes; so,
      unless a checked reply is on its way, it is as if it had ended.
      (Only if everything is ``checked``: no planted bug.)
    """
    newest = state.published[-1] if state.published else 0
    files, owners = state.files, state.owners
    changes: dict[str, object] = {}
    if len(state.published) > 1:
        changes["published"] = (newest,)
    if newest > 1:
        if checked and any(each.life == UP and each.lease == OLD and 0 < each.epoch < newest and each.place != REPLY
               for each in owners):  # fmt: skip
            owners = tuple(
                DEAD_OWNER
                if each.life == UP and each.lease == OLD and 0 < each.epoch < newest and each.place != REPLY
                else each
                for each in owners
            )
            changes["owners"] = owners
        read = {each.source for each in owners if each.place == LOAD}
        if any(each and each != NOTHING and number < newest and number not in read
               for number, each in enumerate(files, 1)):  # fmt: skip
            changes["files"] = tuple(
                NOTHING if number < newest and number not in read else each for number, each in enumerate(files, 1)
            )
    epoch, holder = len(state.claims), state.claims[-1]
    if state.ended and state.ended != (holder,):
        changes["ended"] = (holder,) if holder in state.ended else ()
    if state.released and state.released != (epoch,):
        changes["released"] = (epoch,) if epoch in state.released else ()
    return state._replace(**changes) if changes else state  # type: ignore[arg-type]
