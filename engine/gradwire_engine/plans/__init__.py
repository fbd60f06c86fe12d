"""Frames that repeat, run as straight lines of kernel calls: captured from the tape, guarded, equal to the last bit.

The first frame of a structure runs on the tape. The second runs on the tape and is captured; if many others came in
between, the third is. After that the plan runs: kernel calls over local variables, without argument binding, rules,
nodes, or tensors that do not outlive the frame. Forward, backward and optimizer step are one line. Plans are not
session state: no snapshot holds them, and a replay makes its own. With and without plans (``GRADWIRE_PLANS=off``) a
session holds and answers the same.

* Capture works on arrays (:mod:`.tracing`). The engine tells its tracer about kernel calls with their arguments,
  operand casts, result layouts, views, writes and copies. Derivatives and composite ops need no extra code. An op
  that reads values stops the tracer with a reason: the frame goes on, without a plan.
* The key of a plan is a deterministic walk from the external tensors to gradients, bases and, if the frame goes
  backward, the graph (:mod:`.inputs`). It holds metas, strides, flags, memory sharing, edges and saved tensors, and
  is compared before anything changes. In an ordinary step, where externals lead only to leaves and gradients, a
  generated function recognises them (:mod:`.guards`); otherwise the walk decides.
* Numbers of the frame are data and passed to kernels each time. So are numbers that nodes of earlier frames keep, if
  their derivative only hands them on: an episode's graph is the same whichever actions were taken. A number that a
  derivative or composite op inspected, or that places a write, must be the same again. The start of a slice goes
  through the rule again, which must infer the same shapes.
* Effects are compared, not recorded (:mod:`.effects`). After a captured frame, all objects reachable from its results
  and externals are compared with those before: new tensors, storages and nodes become templates; changes of old ones
  become a list. Version counts, node numbers and peak memory are relative.
* Unobservable objects are created lazily. The spent graph of a step is one object that counts as its nodes and
  becomes them on inspection (:mod:`.lazy_node_templates`). Single NumPy expressions are inlined; dimensionless values
  compute with NumPy scalars, to the same bits (:mod:`.expressions`). Choices that follow from key and structure, and
  values that follow from constants, are made when the plan is.
* Runs of elementwise calls are fused where compiled kernels are loaded (:mod:`.fusion`): forward and backward, with
  broadcasting, and operands of any layout. A call waits until something needs its result, so a run may collect calls
  between which matrix products stand. It computes block by block in the nearest cache, divided among threads, and what
  nobody else needs has no memory. Of results with 131,072 elements two calls are enough, of smaller ones more;
  below 8,192 elements NumPy's calls are as fast. Optimizer steps have kernels of one pass of their own.
* Failures. Until a plan writes to memory that existed before, it can be abandoned; a write that a later kernel may
  still spoil keeps a copy. A failed plan is rolled back and the frame runs on the tape, which reports the error.
  After the first write of an optimizer there is no way back: if memory runs out there, everything that the frame
  would have made or changed is poisoned.
* Limits. A session keeps plans for 256 structures with four variants each, 100,000 lines in all. A structure that
  keeps missing is captured ever more rarely, most of all one whose last plan never ran. A frame that goes backward
  through a graph of earlier frames is captured only when that graph comes again. ``describe`` counts hits, and
  misses by reason.
* On a GPU (:mod:`.device`, :mod:`.graph_segments`), a frame on one device is a plan; numbers in CPU memory are
  allowed. A frame that uses two devices, or copies between them, stays on the tape. The same fused kernels run again,
  under the same matmul precision. Runs of at least three launches that write to their own memory, or to memory that
  was there before the frame, become CUDA graphs; optimizer steps, payloads, constants and reads stay outside. What a
  capture refuses, and a number that differs each time, parts the runs of the structure's next plan.

``GRADWIRE_TEST_PLANS=shadow`` runs each frame on the tape, and by a plan in a copy of the session that is restored
from a snapshot. An older frame's plan is preferred, since plans are for other numbers and values. The two sessions
are compared by their snapshots: every byte, version, node, flag, count and the peak of memory. If the plan fails, the
copy must be unchanged and the tape must fail too. ``make shadow`` does this for a choice of tests.
"""
