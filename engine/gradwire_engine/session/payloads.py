"""The data of a frame's payloads as arrays: from the frame's buffers, from uploads, or from nested lists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradwire_protocol.dtypes import DType
from gradwire_protocol.errors import MalformedFrame, ShapeError
from gradwire_protocol.frames import Payload

from ..runtime.arrays import Array, native
from ..runtime.memory import MemoryAccount
from .json_values import from_json
from .uploads import Uploads


def payload_array(
    account: MemoryAccount,
    uploads: Uploads,
    client: int,
    buffers: list[memoryview],
    payload: Payload,
    dtype: DType,
    shape: tuple[int, ...],
) -> Array:
    """The array of a payload.

    Raises:
        ShapeError: when the data does not have this shape.
        MalformedFrame: when the frame has no such buffer, or the client no such upload.
        OutOfMemory: when the array does not fit into the session's memory.
    """
    if shape and min(shape) < 0:
        raise ShapeError(f"size {list(shape)} must not be negative")
    nbytes = math.prod(shape) * dtype.itemsize
    if not account.fits(nbytes):
        account.check(nbytes, f"an upload of shape {list(shape)}")
    if payload.buffer is not None:
        if not 0 <= payload.buffer < len(buffers):
            raise MalformedFrame(f"the frame has {len(buffers)} buffers and no buffer {payload.buffer}")
        data: Any = buffers[payload.buffer]
    elif payload.upload is not None:
        data = uploads.take((client, payload.upload))
    else:
        return from_json(payload.values, dtype, shape)
    if len(data) != nbytes:
        raise ShapeError(f"{dtype.name} of shape {list(shape)} needs {nbytes} bytes, but got {len(data)}")
    array: Array = np.ndarray(shape, native(dtype), data)
    # An upload owns its memory. A buffer is a slice of the message, which must not be modified or kept alive.
    return array if payload.upload is not None else array.copy()
