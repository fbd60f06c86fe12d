"""``python -m gradwire``: the ``gradwire`` command."""

from .cli import main

main()
