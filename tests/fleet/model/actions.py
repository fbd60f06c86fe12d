"""The actions: one step of one process, of the storage, of the clocks. Each mirrors one step of the server's code."""

from __future__ import annotations

from collections.abc import Iterator

from .state import (
    BEGIN,
    CLAIM,
    COPY,
    COPY_JOURNAL,
    DEAD,
    DEAD_OWNER,
    DELETE,
    DELETED,
    DONE,
    FRESH,
    GIVE_UP,
    IDLE,
    LEASE_TICKS,
    LOAD,
    MANIFEST,
    NO_OP,
    OLD,
    PUBLISH,
    REFUSED,
    RELEASE,
    REPLY,
    SENT,
    SERVE,
    SNAPSHOT,
    UP,
    WAIT_TICKS,
    WRITE,
    Bounds,
    Files,
    Operation,
    Owner,
    State,
    Watch,
    replayed,
)
from .storage import Bugs, take_effect

Step = tuple[str, State]


def steps(state: State, bounds: Bounds, bugs: Bugs) -> Iterator[Step]:
    """Every action that is possible, and the state after it."""
    ticked = _tick(state, "renewal_after_lapse" in bugs)
    if ticked is not state and bounds.clocks:
        yield "time passes", ticked
    for number, op in enumerate(state.late):
        rest = state._replace(late=state.late[:number] + state.late[number + 1 :])
        yield f"late: {_text(op)} takes effect", take_effect(rest, op, bugs)[0]
    unused = False
    for number, owner in enumerate(state.owners):
        if owner == FRESH and number not in state.claims and not any(op.owner == number for op in state.late):
            if unused:
                continue  # processes that have done nothing are the same
            unused = True
        if owner.life == UP:
            yield from _owner(state, number, owner, bounds, bugs)


def _name(number: int) -> str:
    return "ABCDEF"[number]


def _text(op: Operation) -> str:
    """An operation for a reader."""
    epoch, records = f"epochs/{op.epoch}", list(op.records)
    match op.kind:
        case "claim":
            return f"create claims/{op.epoch} = {_name(op.owner)}"
        case "claim deleted":
            return f"create claims/{op.epoch} = deleted"
        case "segment":
            return f"put {epoch}/journal-{op.number}/{op.offset} = {records}"
        case "snapshot":
            return f"put {epoch}/snapshot-{op.number} = {records}"
        case "begin":
            return f"put {epoch}/journal-{op.number}"
        case "manifest":
            return f"put {epoch}/manifest -> journal-{op.number}"
        case "remove given up":
            return f"remove {epoch}/snapshot-{op.number} and {epoch}/journal-{op.number}"
        case "copy":
            return f"put {epoch}/snapshot-{op.number} = {records} and manifest"
        case "remove replaced":
            return f"remove what {epoch}/snapshot-{op.number} replaces"
        case "remove epochs":
            return f"remove the epochs before {op.epoch}"
        case "remove all":
            return "remove all files of the session"
    return f"create {op.kind}/{op.epoch}"


def _put(state: State, number: int, owner: Owner) -> State:
    owners = state.owners
    return state._replace(owners=(*owners[:number], owner, *owners[number + 1 :]))


def _late(state: State, op: Operation) -> State:
    return state._replace(late=tuple(sorted((*state.late, op))))


def _valid(owner: Owner) -> bool:
    """Whether a check of the own lease may still pass. durable/shared: the lease's check."""
    return owner.lease <= LEASE_TICKS


def _checked(owner: Owner) -> str:
    return ", its lease is valid" if _valid(owner) else ", its lease has lapsed"


def _tick(state: State, keep_lapsed: bool) -> State:
    """All clocks go on.

    The lease of a process that has claimed nothing does not count: it may renew it at any time, and nobody watches it.
    Neither does that of the only process that is left.
    """
    owners = []
    alone = sum(owner.life == UP for owner in state.owners) == 1
    watched = {each.watch.target for each in state.owners if each.watch is not None}
    for number, owner in enumerate(state.owners):
        if number not in watched and owner._replace(watch=None) == FRESH:
            if owner.watch is not None and owner.watch.since < OLD:
                owner = owner._replace(watch=owner.watch._replace(since=owner.watch.since + 1))
        elif owner.life == UP and not alone:
            lease = min(owner.lease + 1, OLD)
            renewal = owner.renewal if owner.renewal < 0 else owner.renewal + 1
            renewed = owner.renewed
            if renewal >= OLD or (lease == OLD and not keep_lapsed):
                renewal, renewed = -1, False  # no answer to it can be of use, and its effect would only delay others
            watch = owner.watch
            if watch is not None and watch.since < OLD:
                watch = watch._replace(since=watch.since + 1)
            if lease != owner.lease or renewal != owner.renewal or watch is not owner.watch:
                owner = owner._replace(lease=lease, renewal=renewal, renewed=renewed, watch=watch)
        owners.append(owner)
    after = tuple(owners)
    return state if after == state.owners else state._replace(owners=after)


def _owner(state: State, number: int, owner: Owner, bounds: Bounds, bugs: Bugs) -> Iterator[Step]:
    name = _name(number)
    if owner.place == IDLE:
        yield from _contend(state, number, owner, bugs)
        if owner._replace(watch=None) != FRESH or number in state.claims:
            yield from _end(state, number, owner, bounds)
            yield from _lease(state, number, owner, bugs)
        return  # the end of the others would be the same as to do nothing
    yield from _end(state, number, owner, bounds)
    yield from _lease(state, number, owner, bugs)
    if owner.op == SENT:
        op = operation(number, owner, bugs)
        after, result = take_effect(state, op, bugs)
        yield (
            f"{name}: {_text(op)} {'takes effect' if result == DONE else 'is refused'}",
            _put(after, number, owner._replace(op=result)),
        )
        if state.retries and len(state.late) < bounds.late:
            again = owner
            if "longer_retry" in bugs and owner.place == WRITE and len(owner.memory) < bounds.frames:
                again = owner._replace(memory=(*owner.memory, len(owner.memory) + 1))
            after = _late(state._replace(retries=state.retries - 1), op)
            yield f"{name}: no answer to {_text(op)}; sent again", _put(after, number, again)
            if owner.place in (SNAPSHOT, BEGIN, MANIFEST):
                given_up = _given_up(owner, bugs)
                yield f"{name}: no answer to {_text(op)}; the snapshot is given up", _put(after, number, given_up)
    elif owner.op != NO_OP:
        yield from _answered(state, number, owner, bounds, bugs)
        if state.retries and owner.op == DONE:
            after = state._replace(retries=state.retries - 1)
            yield f"{name}: the answer is lost; sent again", _put(after, number, owner._replace(op=SENT))
    else:
        yield from _act(state, number, owner, bounds, bugs)


def _given_up(owner: Owner, bugs: Bugs) -> Owner:
    """A snapshot is given up, and what is left of it removed. durable/shared/mirrored_disk.py: none is taken after the
    same record again, so nothing of that name is written any more, whenever the put or the removal takes effect."""
    barred = 0 if "given_up_and_again" in bugs else len(owner.memory)
    if owner.place == SNAPSHOT:
        return owner._replace(place=SERVE, op=NO_OP, barred=barred)
    return owner._replace(place=GIVE_UP, op=SENT, barred=barred)


def _end(state: State, number: int, owner: Owner, bounds: Bounds) -> Iterator[Step]:
    """A crash at any point, and the end by its own hand of an owner whose lease has lapsed. fleet: the worker."""
    if not bounds.crashes:
        return
    name = _name(number)
    after = _put(state, number, DEAD_OWNER)
    yield f"{name} {'sees that its lease has lapsed and ends' if owner.lease == OLD else 'crashes'}", after
    if owner.op == SENT and bounds.late_after_end and len(state.late) < bounds.late:
        op = operation(number, owner, frozenset())
        yield f"{name} ends while '{_text(op)}' is under way", _late(after, op)


def _lease(state: State, number: int, owner: Owner, bugs: Bugs) -> Iterator[Step]:
    """The owner's lease: time noted, counter written, answer checked. durable/shared: the thread that renews."""
    name = _name(number)
    if owner.renewal < 0:
        if _valid(owner) or "renewal_after_lapse" in bugs:
            yield f"{name} notes the time and sends its counter", _put(state, number, owner._replace(renewal=0))
        return
    if not owner.renewed:
        owners = list(state.owners)
        for other, each in enumerate(owners):
            if each.watch is not None and each.watch.target == number and not each.watch.changed:
                owners[other] = each._replace(watch=each.watch._replace(changed=True))
        owners[number] = owner._replace(renewed=True)
        yield f"{name}: put owners/{name} takes effect", state._replace(owners=tuple(owners))
    elif _valid(owner) or "renewal_after_lapse" in bugs:
        lease = 0 if "lease_from_answer" in bugs else owner.renewal
        yield (
            f"{name}: the counter's answer; lease renewed",
            _put(state, number, owner._replace(lease=lease, renewal=-1, renewed=False)),
        )


def _contend(state: State, number: int, owner: Owner, bugs: Bugs) -> Iterator[Step]:
    """Wait for the end of the newest claim's owner, then claim. durable/shared: the end of owners, and claims."""
    name, epoch = _name(number), len(state.claims)
    holder, watch = state.claims[-1], owner.watch
    if holder == DELETED:
        yield f"{name} sees that the session is deleted", _put(state, number, DEAD_OWNER)
        return
    if holder in state.ended or epoch in state.released:
        if _valid(owner):
            claiming = owner._replace(place=CLAIM, epoch=epoch + 1, op=SENT, watch=None)
            yield f"{name} sends its claim of epoch {epoch + 1}", _put(state, number, claiming)
        return
    if holder == number:
        return
    if state.owners[holder].life == DEAD or "word_of_a_node" in bugs:
        yield f"{name}: Ray says that {_name(holder)} died; {_name(holder)}.ended", _ended(state, number, owner, holder)
    if watch is None or watch.target != holder:
        # Reads are one step here: a first read that is answered later, or a last one that was sent earlier, only
        # sees more writes and waits longer. The planted bugs of the clocks break exactly this, so they have two steps.
        stage = 2 if "clock_before_first_read" in bugs else 0
        yield (
            f"{name} {'notes the time' if stage else f'reads owners/{_name(holder)}, notes the time'}",
            _put(state, number, owner._replace(watch=Watch(holder, stage=stage))),
        )
    elif watch.stage == 2:
        yield (
            f"{name} reads owners/{_name(holder)}",
            _put(state, number, owner._replace(watch=watch._replace(stage=0, changed=False))),
        )
    elif watch.stage == 1:
        if watch.since >= WAIT_TICKS:
            yield f"{name} has waited long enough; {_name(holder)}.ended", _ended(state, number, owner, holder)
    elif watch.changed:
        yield f"{name} reads another counter, notes the time", _put(state, number, owner._replace(watch=Watch(holder)))
    elif "clock_after_last_read" in bugs:
        yield f"{name} reads the same counter", _put(state, number, owner._replace(watch=watch._replace(stage=1)))
    elif watch.since >= (LEASE_TICKS if "no_margin" in bugs else WAIT_TICKS):
        yield (
            f"{name} reads the same counter after its wait; {_name(holder)}.ended",
            _ended(state, number, owner, holder),
        )


def _ended(state: State, number: int, owner: Owner, holder: int) -> State:
    after = _put(state, number, owner._replace(watch=None))
    return after._replace(ended=tuple(sorted({*state.ended, holder})))


def operation(number: int, owner: Owner, bugs: Bugs) -> Operation:
    """The storage operation that an owner waits for."""
    epoch, memory, base = owner.epoch, owner.memory, owner.base
    match owner.place:
        case "claim":
            return Operation("claim", epoch, owner=number)
        case "copy":
            return Operation("copy", epoch, number=base, records=memory[:base])
        case "copy journal":
            return Operation("segment", epoch, number=base, records=memory[base:])
        case "publish":
            return Operation("publish", epoch)
        case "write":
            return Operation("segment", epoch, number=base, offset=owner.source - base, records=memory[owner.source :])
        case "snapshot":
            return Operation("snapshot", epoch, number=len(memory), records=memory)
        case "begin":
            return Operation("begin", epoch, number=len(memory))
        case "manifest":
            return Operation("manifest", epoch, number=len(memory))
        case "give up":
            return Operation("remove given up", epoch, number=len(memory))
        case "release":
            return Operation("release", epoch)
        case "delete":
            if "tombstone_beside_claims" in bugs:
                return Operation("tombstone", epoch)
            return Operation("claim deleted", epoch + 1)
    raise AssertionError(owner.place)


def _answered(state: State, number: int, owner: Owner, bounds: Bounds, bugs: Bugs) -> Iterator[Step]:
    """The answer of the storage has come, and the next step is taken. No check can pass with a lapsed lease."""
    name, free = _name(number), owner._replace(op=NO_OP)
    if owner.op == REFUSED:
        if owner.place == CLAIM:
            yield f"{name} did not get epoch {owner.epoch}", _put(state, number, _idle(state, number, owner))
        return  # a deletion that is refused: somebody has claimed, so this owner's lease is over
    match owner.place:
        case "claim":
            yield from _read(state, number, free, bugs)
        case "copy":
            journal = len(owner.memory) > owner.base
            if "early_publication" in bugs:
                yield f"{name} publishes", _put(state, number, owner._replace(place=PUBLISH, op=SENT))
            elif journal:
                yield f"{name} copies the journal", _put(state, number, owner._replace(place=COPY_JOURNAL, op=SENT))
            else:
                yield f"{name} publishes", _put(state, number, owner._replace(place=PUBLISH, op=SENT))
        case "copy journal":
            if "early_publication" in bugs:
                yield f"{name} serves", _put(state, number, free._replace(place=SERVE, outdated=True))
            else:
                yield f"{name} publishes", _put(state, number, owner._replace(place=PUBLISH, op=SENT))
        case "publish":
            if "early_publication" in bugs and len(owner.memory) > owner.base:
                yield f"{name} copies the journal", _put(state, number, owner._replace(place=COPY_JOURNAL, op=SENT))
            else:
                yield f"{name} serves", _put(state, number, free._replace(place=SERVE, source=0, outdated=True))
        case "write":
            if _valid(owner) or "unchecked_reply" in bugs:
                after = free._replace(place=REPLY, source=0)
                yield f"{name}: records are written{_checked(owner)}", _put(state, number, after)
        case "snapshot":
            yield f"{name} begins a journal", _put(state, number, owner._replace(place=BEGIN, op=SENT))
        case "begin":
            yield f"{name} writes the manifest", _put(state, number, owner._replace(place=MANIFEST, op=SENT))
        case "give up":
            yield f"{name} goes on with its journal", _put(state, number, free._replace(place=SERVE))
        case "release":
            yield f"{name} has released epoch {owner.epoch}", _put(state, number, _idle(state, number, owner))
        case "delete":
            if "tombstone_beside_claims" not in bugs or _valid(owner):
                told = _put(state, number, DEAD_OWNER)._replace(told_deleted=True)
                yield f"{name} tells the client that the session is deleted", told
                if "tombstone_beside_claims" in bugs and len(state.late) < bounds.late:
                    yield f"{name} tells so and removes the files", _late(told, Operation("remove all", owner.epoch))
        case "manifest":
            kept = _put(state, number, free._replace(place=SERVE, base=len(owner.memory)))
            yield f"{name} keeps what its snapshot replaces for now", kept
            if (_valid(owner) or "unchecked_removal" in bugs) and len(state.late) < bounds.late:
                removal = Operation("remove replaced", owner.epoch, number=len(owner.memory))
                yield f"{name}{_checked(owner)}; sends '{_text(removal)}'", _late(kept, removal)


def _idle(state: State, number: int, owner: Owner) -> Owner:
    """The owner without its claim. Its lease counts no more if nobody watches it."""
    if owner.lease == OLD:
        return DEAD_OWNER
    if any(each.watch is not None and each.watch.target == number for each in state.owners):
        return Owner(lease=owner.lease, renewal=owner.renewal, renewed=owner.renewed)
    return FRESH


def _act(state: State, number: int, owner: Owner, bounds: Bounds, bugs: Bugs) -> Iterator[Step]:
    """What an owner does of its own accord: take over, then serve."""
    match owner.place:
        case "load":
            yield from _load(state, number, owner, bugs)
        case "reply":
            acked = max(state.acked, len(owner.memory))
            after = _put(state, number, owner._replace(place=SERVE))
            yield f"{_name(number)} acknowledges frames up to {len(owner.memory)}", after._replace(acked=acked)
        case "serve":
            yield from _serve(state, number, owner, bounds, bugs)


def _read(state: State, number: int, owner: Owner, bugs: Bugs) -> Iterator[Step]:
    """After the claim: which epoch is the newest published one, and what does its manifest say?"""
    name = _name(number)
    if state.tombstone:
        yield f"{name} has epoch {owner.epoch} and finds the tombstone", _put(state, number, DEAD_OWNER)
        return
    source = max(state.published, default=0)
    if "unpublished_source" in bugs:
        source = max((epoch for epoch, files in enumerate(state.files, 1) if files.manifest >= 0), default=0)
    if not source or state.files[source - 1].manifest < 0:
        yield f"{name} has epoch {owner.epoch} and finds nothing to take over", _refused(state, number, owner)
        return
    base = state.files[source - 1].manifest
    if "unchecked_removal" in bugs and (listed := replayed(state.files[source - 1])) is not None:
        base = listed[0]
    yield (
        f"{name} has epoch {owner.epoch} and takes epoch {source} over, whose manifest says journal-{base}",
        _put(state, number, owner._replace(place=LOAD, source=source, base=base)),
    )


def _load(state: State, number: int, owner: Owner, bugs: Bugs) -> Iterator[Step]:
    """Read the list of files, snapshot and journals, after the manifest: one step, since a takeover that misses a file
    of its list begins anew. A takeover may also fail for want of memory."""
    name, files = _name(number), state.files[owner.source - 1] if owner.source <= len(state.files) else Files()
    fixed = frozenset({"start_from_manifest"}) if "unchecked_removal" in bugs else bugs
    found = replayed(files._replace(manifest=owner.base), fixed)
    if found is None:
        yield f"{name} misses files of epoch {owner.source}", _refused(state, number, owner)
        return
    start, records = found
    copying = owner._replace(place=COPY, op=SENT, memory=records, base=start, source=0)
    yield f"{name} reads {list(records)} from snapshot-{start} on and copies it", _put(state, number, copying)
    if "kept_claim" in bugs:
        yield f"{name} cannot take the session over", _put(state, number, _idle(state, number, owner))
    elif state.releases:
        released = owner._replace(place=RELEASE, op=SENT, source=0, base=0)
        after = _put(state, number, released)._replace(releases=state.releases - 1)
        yield f"{name} cannot take the session over and releases it", after


def _refused(state: State, number: int, owner: Owner) -> State:
    """A recovery that cannot be: an error if this owner still is the owner, else no matter."""
    after = _put(state, number, DEAD_OWNER)
    return after._replace(broken="recovery was refused") if owner.lease <= LEASE_TICKS else after


def _serve(state: State, number: int, owner: Owner, bounds: Bounds, bugs: Bugs) -> Iterator[Step]:
    name, done = _name(number), len(owner.memory)
    for last in range(done + 1, bounds.frames + 1):
        frames = tuple(range(done + 1, last + 1))
        writing = owner._replace(place=WRITE, op=SENT, source=done, memory=owner.memory + frames)
        yield f"{name} applies frames {list(frames)} and writes them", _put(state, number, writing)
    if done > state.acked:
        if "resent_is_new" in bugs:
            writing = owner._replace(place=WRITE, op=SENT, source=done, memory=(*owner.memory, state.acked + 1))
            yield f"{name} applies frame {state.acked + 1}, which was sent again", _put(state, number, writing)
        if _valid(owner) or "unchecked_reply" in bugs:
            replying = owner._replace(place=REPLY)
            yield f"{name} answers what was sent again from its records{_checked(owner)}", _put(state, number, replying)
    if state.rotations and done > owner.base and done != owner.barred:
        rotating = owner._replace(place=SNAPSHOT, op=SENT)
        after = _put(state, number, rotating)._replace(rotations=state.rotations - 1)
        yield f"{name} writes a snapshot after {done} records", after
    if owner.outdated and (_valid(owner) or "unchecked_epochs" in bugs):
        kept = _put(state, number, owner._replace(outdated=False))
        if len(state.late) < bounds.late:
            removal = Operation("remove epochs", owner.epoch)
            yield f"{name}{_checked(owner)}; sends '{_text(removal)}'", _late(kept, removal)
    if state.releases:
        releasing = Owner(UP, owner.lease, owner.renewal, owner.renewed, None, owner.epoch, RELEASE, SENT)
        after = _put(state, number, releasing)._replace(releases=state.releases - 1)
        yield f"{name} hands the session over", after
    if bounds.deletion:
        deleting = Owner(UP, owner.lease, owner.renewal, owner.renewed, None, owner.epoch, DELETE, SENT)
        yield f"{name} deletes the session", _put(state, number, deleting)
