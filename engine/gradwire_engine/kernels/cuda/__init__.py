"""Kernels for GPUs: fused kernels, matrix products, convolution. Loaded when a GPU is first used.

Without a GPU, the tests show that all sources compile for five architectures (NVRTC and nvcc), that the kernels and
their launching code agree with NumPy's kernels in an emulator (``tests/cuda_emulation`` runs a block's threads as
fibers), and that cuBLASLt, cuDNN, graphs and pinned memory work against stand-ins. Only a GPU shows speed, rounding,
races, whether cuBLASLt and cuDNN find an algorithm, and what CUDA captures. ``make gpu`` checks these and writes
``benchmarks/results/gpu.md``.

* Choice. A kernel of ``runtime/cuda/registry.py`` takes the op kernel's arguments and returns ``NotImplemented`` for
  a dtype, layout or option that it does not cover, by shapes and never by values; the op's kernel then runs on CuPy.
  Half precision is loaded as float32 and rounded once.
* Sources are the ``.cu`` files of ``runtime/cuda/sources/``, compiled once per element type. They include nothing, so
  NVRTC needs no headers. Block sums are trees whose form follows from the shape: the same op gives the same bits.
* Elementwise. A line of Python text in ``numerics/expressions.py`` defines an op; :mod:`.language` writes it in C++,
  and :mod:`.fusion` makes one kernel from a run of lines over operands of any layout. Each step is rounded to its
  dtype and products are not contracted with sums, so a fused run has the bits of its steps. Numbers are arguments: no
  value causes compilation. Today each run is one op.
* Products (:mod:`.products`) call cuBLASLt through ``ctypes``. CuPy would upcast stacks of float16, compute those of
  bfloat16 as integers, copy operands, and may not be captured. Transposed and sliced operands are read in place, and
  a bias is added within the product. The algorithm is chosen once per problem and kept, so a replay has the same bits
  on the same GPU and library. Without the library, CuPy's ``matmul`` runs.
* CuPy (:mod:`.namespace`) is given to kernels with other products, and with host arrays kept on the device, since CUDA
  graphs hold neither cuBLAS calls of CuPy nor copies from the host.
* An embedding's gradient is added up in one order (:mod:`.embedding`), up to 16,384 rows; other scattered sums are not.
* Batch norm is one block per channel (:mod:`.channels`); sums over leading dimensions go by columns.
* TF32 is off, as in PyTorch, which has it on for convolutions, however. ``set_float32_matmul_precision`` is a control
  op, so journals and snapshots record it. It applies to products, attention and cuDNN's convolutions.
* Attention is two products with one kernel between them. Its weights are a result of the op, which flash attention
  could not return; that costs memory traffic.
* Recurrent layers: a step is one product and one kernel (:mod:`.recurrent`), there and back, except with projections.
* Optimizers: ``sgd_step`` and ``adam_step`` update eight tensors per launch.
* Convolution uses cuDNN where its frontend is installed, without engines of nondeterministic order. Otherwise windows
  are unrolled and multiplied, as on the CPU.
* Copies go through a ring of 16 MiB of pinned memory per session and GPU (``runtime/cuda/staging.py``). Uploads do
  not wait, and the reads of a frame travel together. An engine outside a session has no stream of its own and copies
  through CuPy.
* Graphs (``runtime/cuda/graphs.py``) are captured on the second run of a segment and launched while shapes, strides
  and numbers stay the same. A training step is usually one graph and the optimizer's launches. Parameters are read in
  place, batches are copied in, random numbers count from a word in memory, and results are lent. A kernel need not say
  that it can be captured; one that cannot (it waits, or copies from the host) parts the graph. Each graph has its own
  memory pool; together these may hold half of the session's memory on the GPU, by which the session's own pool
  shrinks. Graphs are freed with their plan, or when memory runs out.
"""

from __future__ import annotations

from functools import cache

from gradwire_protocol.table import TABLE

from ...autograd.registry import row
from ...runtime.cuda.registry import KERNELS, Fused, load_with
from .namespace import namespace


@cache
def load() -> dict[str, Fused]:
    """The ops that have a kernel of their own on a GPU, in-place forms included."""
    from ... import ops  # noqa: F401  (fills the registry, which some kernels ask)
    from . import (  # noqa: F401  (each registers its own)
        attention,
        channels,
        convolution,
        dropout,
        embedding,
        losses,
        optimizer,
        pointwise,
        products,
        recurrent,
        rows,
    )  # fmt: skip

    found = dict(KERNELS)
    for op in TABLE.values():
        if op.base is not None and op.base.name in KERNELS and not row(op.name).writes:
            found[op.name] = KERNELS[op.base.name]
    return found


load_with(load, namespace)
