"""Stores: texts and numbers by key, within one program. Ranks of several programs meet on the server instead."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from gradwire_protocol.errors import ArgumentError


class Store:
    """What stores have in common."""

    timeout: timedelta = timedelta(minutes=5)

    def set_timeout(self, timeout: timedelta) -> None:
        """How long :meth:`get` and :meth:`wait` wait."""
        self.timeout = timeout


class HashStore(Store):
    """Keys and values of this program, for its threads."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()

    def set(self, key: str, value: str | bytes) -> None:
        """Set a value."""
        with self._changed:
            self._values[key] = value.encode() if isinstance(value, str) else bytes(value)
            self._changed.notify_all()

    def get(self, key: str) -> bytes:
        """A value, once it is there.

        Raises:
            ArgumentError: when it does not come in time.
        """
        self.wait([key])
        return self._values[key]

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which begins with 0."""
        with self._changed:
            total = int(self._values.get(key, b"0")) + amount
            self._values[key] = str(total).encode()
            self._changed.notify_all()
            return total

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Set a value if it is as expected, or not there and nothing is expected. Returns what there is then."""
        with self._changed:
            found = self._values.get(key)
            if found == expected_value.encode() or (found is None and not expected_value):
                self._values[key] = found = desired_value.encode()
                self._changed.notify_all()
            return expected_value.encode() if found is None else found

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there.

        Raises:
            ArgumentError: when they do not come in time.
        """
        limit = (timeout or self.timeout).total_seconds()
        with self._changed:
            if not self._changed.wait_for(lambda: all(key in self._values for key in keys), limit):
                missing = [key for key in keys if key not in self._values]
                raise ArgumentError(f"{missing} did not come into the store within {limit:g} s")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return all(key in self._values for key in keys)

    def num_keys(self) -> int:
        """How many keys there are."""
        return len(self._values)

    def delete_key(self, key: str) -> bool:
        """Take a key away. Returns whether it was there."""
        with self._changed:
            return self._values.pop(key, None) is not None


class PrefixStore(Store):
    """Another store, whose keys get a prefix."""

    def __init__(self, prefix: str, store: Any) -> None:
        self.underlying_store: Any = store
        self._prefix = prefix

    def _keyed(self, key: str) -> str:
        return f"{self._prefix}/{key}"

    def set(self, key: str, value: str | bytes) -> None:
        """Set a value."""
        self.underlying_store.set(self._keyed(key), value)

    def get(self, key: str) -> bytes:
        """A value, once it is there."""
        found: bytes = self.underlying_store.get(self._keyed(key))
        return found

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which begins with 0."""
        return int(self.underlying_store.add(self._keyed(key), amount))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all keys are there."""
        self.underlying_store.wait([self._keyed(key) for key in keys], timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return bool(self.underlying_store.check([self._keyed(key) for key in keys]))

    def delete_key(self, key: str) -> bool:
        """Take a key away. Returns whether it was there."""
        return bool(self.underlying_store.delete_key(self._keyed(key)))

    def num_keys(self) -> int:
        """How many keys the other store has."""
        return int(self.underlying_store.num_keys())
