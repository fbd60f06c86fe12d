"""A gateway, a worker and a session for the tests of the TypeScript client, as a program.

It announces them as a line of JSON. A line on its input is a list of addresses to which redirects lead from now on,
with null for the relay and "worker" for the worker; it answers how many clients asked for a redirect and were relayed
since the line before.
"""

from __future__ import annotations

import json
import sys

from tests.small_fleet import small_fleet


def main() -> None:
    with small_fleet() as fleet:
        session = fleet.create()
        about = {"url": fleet.gateway.url, "apiKey": fleet.gateway.api_key, "worker": fleet.worker.url}
        print(json.dumps(about | {"session": session}), flush=True)
        for line in sys.stdin:
            director = fleet.director
            seen = {"offered": len(director.hellos), "relayed": director.relayed}
            fleet.point(*(fleet.worker.url if each == "worker" else each for each in json.loads(line)))
            print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
