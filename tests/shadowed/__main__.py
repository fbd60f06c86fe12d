"""``python -m tests.shadowed MODULE ARGUMENTS``: run a module whose sessions verify their plans."""

import runpy
import sys

from gradwire_server.settings import tuning

tuning.before_numpy()

from . import shadow_sessions  # noqa: E402

shadow_sessions()
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
