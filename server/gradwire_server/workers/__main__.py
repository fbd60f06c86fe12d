"""``python -m gradwire_server.workers``: one worker. Servers start it; it takes no arguments of people."""

import sys

from .worker import main

if __name__ == "__main__":
    sys.exit(main())
