"""``python -m gradwire``: the ``gradwire`` command."""

from .cli.main import main

main()
