"""``gradwire run``: runs programs that ``import torch`` unchanged with gradwire.

``command.py`` restarts Python on the program with ``startup/`` first on the path. Python loads ``sitecustomize`` from
there before the program, and that installs the import hook of ``finder.py``. Tracebacks, ``sys.argv``, exit codes,
signals and child processes therefore behave as without gradwire.
"""

from .finder import replace_torch

__all__ = ["replace_torch"]
