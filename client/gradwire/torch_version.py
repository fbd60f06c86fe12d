"""``torch.torch_version``: the type of ``torch.__version__``, a string that is compared as a version."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, Self

__all__ = ["TorchVersion"]

_VERSION: Final = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)(?:[-_.]?(?P<pre>a|alpha|b|beta|c|rc|pre|preview)[-_.]?(?P<pre_n>\d*))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*)|-(?P<post_n>\d+))?(?:[-_.]?dev[-_.]?(?P<dev>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_STAGES: Final = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


def _key(text: str) -> tuple[Any, ...] | None:
    """A key that orders versions as PEP 440 says; ``None`` for what is no version."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while release and not release[-1]:
        release.pop()
    stage = found["pre"] and found["pre"].lower()
    post = found["post"] if found["post"] is not None else found["post_n"]
    dev = found["dev"]
    if stage:
        pre = (_STAGES.get(stage, stage), int(found["pre_n"] or 0))
    else:  # a development release precedes the pre-releases, a release follows them
        pre = ("", 0) if dev is not None and post is None else ("z", 0)
    local = found["local"]
    parts = re.split(r"[-_.]", local.lower()) if local else []
    return (
        release, pre, -1 if post is None else int(post or 0), float("inf") if dev is None else int(dev or 0),
        [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts],
    )  # fmt: skip


def _text(other: object) -> str:
    if isinstance(other, str):
        return other
    if isinstance(other, Iterable):
        return ".".join(str(part) for part in other)
    raise TypeError(f"cannot compare a version with {type(other).__name__} {other!r:.60}")


class TorchVersion(str):
    """A version as text. ``<``, ``==`` and so on compare it as a version with strings, versions of ``packaging`` and
    tuples: ``torch.__version__ >= (2, 0)``. What is no version is compared as text."""

    __slots__ = ()

    def __new__(cls, version: object = "") -> Self:
        return super().__new__(cls, version)

    def _pair(self, other: object) -> tuple[Any, Any]:
        text = str(other) if hasattr(other, "release") else _text(other)
        mine, its = _key(self), _key(text)
        return (str(self), text) if mine is None or its is None else (mine, its)

    def __lt__(self, other: object) -> bool:
        mine, its = self._pair(other)
        return bool(mine < its)

    def __le__(self, other: object) -> bool:
        mine, its = self._pair(other)
        return bool(mine <= its)

    def __gt__(self, other: object) -> bool:
        mine, its = self._pair(other)
        return bool(mine > its)

    def __ge__(self, other: object) -> bool:
        mine, its = self._pair(other)
        return bool(mine >= its)

    def __eq__(self, other: object) -> bool:
        try:
            mine, its = self._pair(other)
        except TypeError:
            return False
        return bool(mine == its)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)
