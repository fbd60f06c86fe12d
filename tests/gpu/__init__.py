"""Checks that need a GPU, without an installation: ``python3 -m tests.gpu`` (``make gpu``)."""

import gradwire_engine.kernels.cuda
import gradwire_engine.ops  # noqa: F401  (engines run what is registered)
