"""Derives the conformance vectors in ``protocol/vectors``, and tells whether they are still right.

``python -m tools.vectors`` adds what is missing, and rewrites what is no longer so; ``--check`` (part of
``python -m tools.derive --check``) only tells; ``--freeze 0.1.0`` ends the vectors of a release. A frozen vector does
not change any more: if the code says something else, that is an incompatible change of the protocol.

==================== ===========================================================================================
group                follows from
==================== ===========================================================================================
``envelope``         :mod:`.envelopes`: messages of every type through ``gradwire_protocol.envelope``
``values``           :mod:`.numbers`: dtypes through the engine's JSON form of values
``structure_hash``   :mod:`.structures`: structures through ``gradwire_protocol.frames``
``records``          :mod:`.records`: calls through ``gradwire_protocol.records``
``errors``           :mod:`.problems`: ``gradwire_protocol.errors``
``http``             :mod:`.exchanges`: declared there, run against a server by the tests
``natural``          :mod:`.natural`: frames through ``gradwire_protocol.natural_frames`` and the engine
``stream``           :mod:`.conversations`: declared there, with bytes through ``gradwire_protocol.envelope``
``ops/...``          :mod:`.operations`: the samples of ``tests/samples``, and :mod:`.acts` for ops without samples,
                     computed by the engine
==================== ===========================================================================================
"""
