"""``gradwire run``: programs that say ``import torch`` compute with gradwire, unchanged.

``command.py`` starts Python anew on the program, with ``startup/`` first on its path; what lies there is loaded by
Python before the program and lets ``finder.py`` answer for ``torch``. So the program runs as Python runs it:
tracebacks, ``sys.argv``, exit codes, signals and child processes are Python's own.
"""

from .finder import install

__all__ = ["install"]
