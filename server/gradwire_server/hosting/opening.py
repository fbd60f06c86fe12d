"""Opens a runner for a session's thread."""

from __future__ import annotations

from pathlib import Path

from gradwire_engine.runtime.backends import Backends, DevicePool
from gradwire_engine.snapshot import Image

from ..durable import snapshots
from ..durable.disk import Disk
from ..durable.shared.home import Home
from ..settings.session_spec import JournalPolicy, SessionSpec
from .runner import How, Runner
from .time_travel import PastPlace, forked


def open_runner(
    spec: SessionSpec,
    folder: Path | None,
    how: How = "new",
    image: bytes | memoryview = b"",
    policy: JournalPolicy | None = None,
    disk: Disk | None = None,
    home: Home | None = None,
) -> Runner:
    """Open a runner for a thread of its own; ``image`` is the file to import, the session to go on with, or where the
    past of another session is."""
    limits = spec.engine_limits()
    # The session's limit plus the temporary memory of one op.
    backends = Backends(pool=DevicePool(limits.max_session_bytes + limits.max_tensor_bytes))
    if how == "new":
        return Runner(spec, folder, backends, policy, disk, home)
    if how == "adopt":
        return Runner.adopt(spec, folder, snapshots.decode(image), backends, policy, disk, home)
    if how == "go_on":
        return Runner.go_on(spec, snapshots.decode(image), backends)
    if how == "fork":
        return Runner.fork(spec, folder, _state(image, backends), backends, policy, disk, home)
    if how == "past":
        # Two copies: one that goes on, one that is shown.
        double = Backends(pool=DevicePool(2 * (limits.max_session_bytes + limits.max_tensor_bytes)))
        return Runner.look_back(spec, PastPlace.decode(image), double)
    assert folder is not None
    return Runner.recover(folder, backends, policy, disk, spec.limits.get("plans"), home)


def _state(image: bytes | memoryview, backends: Backends) -> Image:
    """The state that a fork begins with: an image, or a place in the past."""
    place = PastPlace.found(image)
    return snapshots.decode(image) if place is None else forked(place, backends)
