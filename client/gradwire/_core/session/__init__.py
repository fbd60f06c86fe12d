"""Sessions: they build frames, wait for values and errors, and report statistics.

A :class:`.session.Session` owns its parts: ``builder`` (:class:`.frame_builder.FrameBuilder`) records ops and cuts
frames, ``reader`` (:class:`.value_reader.ValueReader`) waits for values and errors, ``read_ahead``
(:class:`.read_ahead.ReadAhead`) asks for what is usually read next along with what is read, and records the small
calls before it ahead of the program (:class:`.expected_calls.Expected`), ``kept_uploads``
(:class:`.upload_cache.UploadCache`) knows what the server keeps, ``link`` makes frames arrive, and ``rest`` asks what
is no frame. The session offers of them what programs use.

When a frame is cut. A read cuts it, and so do 2,048 ops, or 4 ms without a record. After a backward or an optimizer
step the frame is *due*: the next read cuts it, or the next record that does not consume existing gradients. Optimizer
steps, ``grad_of``, clipping and scalers join the frame instead. After ``autograd.grad``, ops on results of the frame
join too, and a call that keeps its graph makes nothing due, so a Hessian-vector product is one frame. A training step
is therefore one frame, cut at the same points each time, and its structure repeats.

Interrupts. A signal handler or a destructor may run at any bytecode of the recording thread and use tensors. It
cannot wait for a lock that its own thread holds. So each step prepares its changes, checks that no interrupt took its
turn, and commits without a call in between: CPython switches only at calls and backward jumps. A step that lost its
turn starts again. An exception that interrupts a record leaves the tables broken; ``FrameBuilder.begin`` repairs them
before the next record.

Uploads. Only the client knows that an upload was skipped. Repeated data stays on the server in a tensor that the
program never sees, and later uploads are recorded as clones of it. Server, journals and snapshots need no rule for
this.
"""
