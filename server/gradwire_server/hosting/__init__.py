"""Hosts run sessions: each in a thread of its own, with a queue of jobs. ``docs/hosting.md`` has the operator's view.

Five mechanisms schedule the work. None of them changes results. Waking a sleeping thread takes 25 to 50 us, as long as
a small frame, and a virtual machine may also lose its processor and caches; the first three avoid it:

* **Direct reception** (``LimitedStream`` in ``http/connection_limits.py``): a stream handles messages in the callback
  that delivers them, and sends small replies from the callback that has them. ASGI would cost two task switches and two
  system calls per message; it carries only the handshake, large values and the end.
* **The duration predictor** (:mod:`.duration_predictor`): a short frame runs in the event loop, without a switch to the
  session's thread. A frame is predicted to be short if its structure took at most 4 ms before, on operands and a graph
  of this size. After a wrong prediction, the structure must be short many times before it counts as short again. This
  does not happen while the session's thread is busy, while another session computes or did so in the last 0.1 s, with a
  journal (its disk may stall) or with a GPU (its streams belong to threads). After 20 ms of such frames, the rest go to
  the session's thread until it is idle, so that reading and computing use two processors.
* **The busy poll** (:mod:`.busy_poll`): after a reply, the event loop polls for the next frame for at most ``spin_s``
  instead of sleeping, if frames usually arrive that soon and there is more than one processor. A poller that finds its
  processor taken sleeps for the next quarter second: a woken thread has priority over a polling one. The poll also ends
  when a session computes in another thread. ``gradwire_protocol.awake`` has the rule, which clients use, too.
* **The compute semaphore** (:mod:`.compute_semaphore`): at most as many sessions compute as there are cores, in FIFO
  order. With 64 busy sessions this at least halves the 99th percentile of the event loop's delay, because fewer threads
  compete for the GIL.
* **Thread sharing** (:mod:`.threads`): sessions that compute at the same time share the threads of BLAS and compiled
  kernels. Two matrix products with two threads each on two processors mostly wait for each other.
"""
