"""Kernels in machine code, for the CPU: what NumPy needs several passes for is done in one.

How to write one. A module of :mod:`.kernels` has a family. The toolchain imports all modules found there, once it can,
in the background; nothing else does, so they may import Numba. A kernel is two functions:

    @native("float32", "float64")                # compiled once per dtype, which the annotations call T
    def scaled_rows(x: In2, factor: Double, out: Out2, start: Count, stop: Count) -> None:
        for i in range(start, stop):
            row, done = x[i], out[i]
            for j in range(row.size):
                done[j] = row[j] * x.dtype.type(factor)

    @compiled("scale")                           # from ..registry: same arguments as the NumPy kernel
    def scale(xp, x, factor):
        if x.dtype.char not in "fd" or x.size < SMALLEST:
            return NotImplemented                # then the NumPy kernel runs
        rows = dense(x.reshape(-1, x.shape[-1]))
        out = np.empty(rows.shape, x.dtype)
        split(scaled_rows, len(rows), rows.shape[1], rows, factor, out)
        return out.reshape(x.shape)

* Annotations (:mod:`.native`) are the signature: ``In<n>`` and ``Out<n>`` are C-contiguous, aligned arrays of T with n
  dimensions, read and written; ``Int<n>``/``IntOut<n>`` of int64, ``Byte<n>``/``ByteOut<n>`` of uint8 (a bool array as
  ``mask.view(np.uint8)``), ``Half<n>``/``HalfOut<n>`` of uint16; ``Count`` is int64, ``Double`` float64, ``Flag`` bool.
  What is passed for an ``In`` must be dense (:func:`.native.dense` copies what is not); anything else is a TypeError.
* Functions that kernels call are ``@inline``; sums whose order the compiler may choose are ``@reducing`` functions of
  their own (their order is fixed when they are compiled, for good), so that the freedom stays theirs. Nothing may
  assume that there is no NaN. Modules of kernels do not import each other: what they share lives beside them, where a
  change of it compiles all of them again. :mod:`.rows` has sums and maxima of rows, :mod:`.elementary` ``exp``,
  ``tanh`` and ``erf`` that vectorise.
* :func:`.threads.split` gives ranges to threads. So a result may not depend on where a range begins and ends: each
  row or element is computed by itself, and sums over rows are made of a number of parts that follows from the shape
  (one iteration a part). Elementwise kernels count blocks of :data:`.native.BLOCK` elements, not elements: the vector
  loop's rest then falls on the same elements for every number of threads.
* A choice between this kernel and NumPy's may depend on dtypes, shapes, strides and attributes. Never on values, the
  clock, or the number of threads: a replay must choose the same.
* Where deciding takes as long as computing, :func:`..registry.settled` registers what decides once for one layout of
  the arguments: a plan calls the function that it gives, with the arrays alone. The kernel itself must compute the
  same bits; the simplest way is that it asks for that function, too.
* ``python -m gradwire_engine.compiled.toolchain`` compiles everything into the cache and says how long it took.
"""
