"""``python -m gradwire_server.workers``: a worker process, started by a server only."""

import sys

from .worker import main

if __name__ == "__main__":
    sys.exit(main())
