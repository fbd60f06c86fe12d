"""A session in the engine: it applies frames and keeps their replies.

A session's state follows from the frames, chunks and joins that it received, in order, and from nothing else: no
clock, no addresses, no set order. It can therefore be rebuilt in two ways, both exact to the last bit: *replay*
applies the same frames to a new session, and a *snapshot* (:mod:`gradwire_engine.snapshot`) holds everything that
later frames can depend on.

* A record that failed for a transient reason (memory, time, a defect) may not fail again. A replay is told which
  records failed (``failures`` of ``Session.apply``): it poisons their results without running them, and no memory or
  time limit stops the others. What such a record had done before it failed (some gradients of a backward) exists in a
  snapshot only.
* A cancelled frame is rolled back. On the tape, ``autograd/undo_log.py`` copies memory and attributes before they
  change; a plan rolls itself back as it does on failure. A replay runs none of the frame's records.
* Inspection (``describe``, ``tensors``, ``graph``) changes nothing. A refused frame changes nothing.
* The same bits need the same array library, processor and number of BLAS threads, which determine the order of
  additions in a matrix product. On a GPU, kernels with atomic additions (``index_add``, scattered gradients) add in
  any order.
"""
