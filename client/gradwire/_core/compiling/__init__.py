"""``gradwire.compile``: recorded calls, sent again without running the Python body. Loaded when used.

``docs/compiling.md`` says what users may expect. Soundness comes from these rules:

* The first call runs the body. Its frames are captured as they are sent and merged into one; its effects on the
  mirror (tensors, nodes, versions, gradients) become templates. No analysis decides what the body *does*; analysis
  decides what it may *depend on*.
* ``ReachableState`` walks from the function through closures, globals that its code names, attributes and containers,
  and notes each place with its content. A replay first checks that all places still hold it.
* ``PurityCheck`` sees each call from the body into C, and refuses those that may depend on the outside world. Code
  that ran outside of what the walk reached is also a reason to refuse.
* After the body, the same places show what it changed in Python. Optimizer numbers may change and a place may receive
  a tensor; any other change makes the call not replayable.
* Each replay asks the optimizers for their numbers: they record a step that is not sent, one record per group.
  Learning rates, counts and schedules need no rule of their own. If this step differs from the recorded one, the body
  runs.
* A replay creates the tensors that outlive the call. The nodes behind them are created when the program inspects
  them.

``Session.repeat`` is a replay whose frame carries a count. The engine applies it as that many frames, so plans,
limits, poisoning and journals work as for any frame.
"""
