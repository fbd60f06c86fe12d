"""Compiled kernels for the CPU (Numba): fused loops for ops that NumPy would compute in several passes.

They stand beside the NumPy kernels, never in their place. ``@compiled("softmax")`` registers a kernel in the op's
row. It takes the NumPy kernel's arguments and returns ``NotImplemented`` where it does not apply; the pipeline then
calls NumPy's.

* Nobody waits. :mod:`.toolchain` lets a child process of low priority fill a cache on disk (a minute or two, once per
  version and processor), then a thread gets ready to load it (half a second). Until then, and always where Numba is
  missing or a kernel does not compile, sessions run on NumPy, and the log has one line about it. A kernel is loaded at
  its first call (:mod:`.later`), by its object code alone (:mod:`.object_code`). The cache has a folder per versions,
  processor and shared sources, and below it one per module's source digest. It holds code, so a folder that other
  users can write to is not used.
* Bits. Compiled kernels round differently from NumPy's, so a session switches between two frames, by an event in its
  journal and its snapshots (``docs/durability.md``). Casts of half precision are exactly NumPy's and need no event.
* Threads. A kernel works on a range without the interpreter lock. :mod:`.threads` owns the threads beside the
  callers', and :mod:`.ranges` divides a range among them: the caller and each thread that is awake take part after
  part by atomic instructions, so another thread costs two microseconds and never the interpreter lock. From 16,000
  elements on awake threads take part, from 65,000 on sleeping ones are woken. A thread looks for more for 0.15 ms
  before it sleeps, and no longer: a product by OpenBLAS that comes next has threads of its own. These would spin for
  30 ms on the same processors; the server makes them sleep at once (``settings/tuning.py`` of the server).
* Arithmetic. A plan writes sums and products of arrays as NumPy's expressions. Of large results, from 262,144 elements
  on, it calls :data:`...runtime.arithmetic.BY_THREADS` instead: the same bits by several threads.
* Runs of elementwise calls in a plan (``kernels/fused.py``): an interpreter that is compiled once, of programs that
  the plan brings. Each step is a loop over 1,024 elements in the nearest cache, with the formula of the op's own kernel
  and so the same bits; two sums, differences or products are one loop where they can be. Nothing is compiled for a
  plan.
* Short kernels: cutoffs at zero (``kernels/cuts.py``) are ufuncs of Numba, whose call takes a quarter of the time.
* Products in registers. :mod:`.emitter` writes vector instructions that the compiler would not find. :mod:`.tiles`
  (sums of products), :mod:`.moves` (copies, transposes) and :mod:`.pairs` (2x2 windows) are made of them. A
  convolution lays an image out as a slab, in which all positions are one dimension and each tap is an offset
  (:mod:`.slabs`): a matrix product of which one factor is never built. Of small images, where much of a slab is
  padding, the taps' positions are gathered first. Strides become phases; the input gradient is the same with exchanged
  roles; the weight gradient keeps the channels of a position adjacent. Where each channel has a kernel of its own, a
  vector holds a position's channels (:mod:`.depthwise`, :mod:`.correlation`). A recurrent layer runs all steps in one
  call per eight sequences with packed weights (:mod:`.recurrence`), and calls ``deadline.check`` every billion
  products. Matrix products of layer sizes (:mod:`.panels`) pack the second factor into panels while the first rows are
  multiplied, and read the first in place; BLAS does the smallest and the largest. A pointwise convolution is such a
  product for each image. Attention takes a matrix at a time, or a block of its rows: scores, weights and the product
  with the values stay in the cache, and so does its gradient; heads are read where they lie. Where weights are
  recomputed in backward, keys and values are laid out once for all blocks of rows, and no weights are written.
* Order. Sums at indices add in the order of the indices; threads share columns. Sums along axes and running sums end
  in float64.
* ``GRADWIRE_TEST_COMPILED=1`` runs any test with compiled kernels; otherwise tests run on NumPy.

How to write one. A module of :mod:`.kernels` holds a family. Only the toolchain imports these modules, in the
background, so they may import Numba. A kernel is two functions:

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

* Annotations (:mod:`.native`) are the signature. ``In<n>`` and ``Out<n>`` are C-contiguous, aligned arrays of T with
  n dimensions, read and written. ``Int<n>``/``IntOut<n>`` are int64, ``Byte<n>``/``ByteOut<n>`` uint8 (a bool array
  as ``mask.view(np.uint8)``), ``Half<n>``/``HalfOut<n>`` uint16, ``Strided<n>`` arrays of T with any strides, which
  are read by their addresses (:mod:`.panels`); ``Count`` is int64, ``Double`` float64, ``Flag``
  bool. An argument for ``In`` must be dense (:func:`.native.dense` copies one that is not); anything else is a
  TypeError.
* Functions that kernels call are ``@inline``. Sums whose order the compiler may choose are separate ``@reducing``
  functions; their order is fixed when they are compiled. Nothing may assume that there is no NaN. Kernel modules do
  not import each other: shared code lives beside them, where a change of it recompiles all of them. :mod:`.rows` has
  sums and maxima of rows, :mod:`.elementary` ``exp``, ``tanh`` and ``erf`` that vectorise.
* :func:`.threads.split` gives ranges to threads, so a result may not depend on where a range begins or ends. Each row
  or element is computed by itself, and sums over rows have a number of parts that follows from the shape (one
  iteration per part). Elementwise kernels count blocks of :data:`.native.BLOCK` elements, so that the remainder of
  the vector loop falls on the same elements for every number of threads.
* The choice between this kernel and NumPy's may depend on dtypes, shapes, strides and attributes. It may not depend
  on values, the clock or the number of threads: a replay must choose the same.
* Where the choice takes as long as the computation, :func:`...autograd.registry.bind_layout` registers a function that
  chooses once per layout of the arguments; plans call its result with the arrays alone. The kernel must compute the
  same bits; the simplest way is to call that function too.
* ``python -m gradwire_engine.kernels.cpu.toolchain`` compiles everything into the cache and prints how long it took.
"""
