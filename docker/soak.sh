#!/usr/bin/env bash
# Runs a test of tests/soak against the CPU image, in a container with the settings and limits of compose.yaml.
#
#     PYTHON=.venv/bin/python docker/soak.sh frames --seconds 3600
#
# The container must survive the test: an exit or an out-of-memory kill fails it.
# Exit status: 0 passed, 1 failed, 2 PYTHON lacks the test's packages, 77 no engine or no base image is available.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. docker/image.sh

"$PYTHON" -c 'import gradwire, tests.soak, yaml, pip' || { echo "$PYTHON cannot run a soak test: make setup" >&2; exit 2; }
find_engine
find_base
build_image

mkdir "$WORK/keys"
chmod 755 "$WORK" # the container's user reads the key files
"$PYTHON" - "$WORK/keys" "$NAME" >"$WORK/options" <<'PY'
"""Writes the key files of the tests' tenants, and compose.yaml's service `cpu` as options of `docker run`."""
import hashlib
import sys
from pathlib import Path

import yaml
from tests.live_server import ADMIN_KEY, API_KEY, OTHER_KEY

folder, name = Path(sys.argv[1]), sys.argv[2]
for file, keys in {"api_keys": (API_KEY, OTHER_KEY), "admin_keys": (ADMIN_KEY,)}.items():
    lines = (f"sha256:{hashlib.sha256(key.encode()).hexdigest()}\n" for key in keys)
    (folder / file).write_text("".join(lines))
    (folder / file).chmod(0o444)
service = yaml.safe_load(Path("docker/compose.yaml").read_text())["services"]["cpu"]
options = {
    "--user": [service["user"]], "--cap-drop": service["cap_drop"], "--security-opt": service["security_opt"],
    "--ipc": [service["ipc"]], "--tmpfs": service["tmpfs"], "--pids-limit": [service["pids_limit"]],
    "--ulimit": [f"{kind}={limit['soft']}:{limit['hard']}" if isinstance(limit, dict) else f"{kind}={limit}"
                 for kind, limit in service["ulimits"].items()],
    "--cpus": [service["cpus"]], "--memory": [service["mem_limit"]], "--memory-swap": [service["mem_limit"]],
    "--env": [f"{key}={value}" for key, value in service["environment"].items()],
    "--volume": [f"{name}:/data", f"{folder}:/run/secrets:ro"],
}
print("--read-only" if service["read_only"] else "")
for option, values in options.items():
    for value in values:
        print(option, value, sep="\n")
PY
mapfile -t options < <(grep . "$WORK/options")
if engine network inspect bridge >/dev/null 2>&1; then
    options+=(--publish 127.0.0.1::8000)
else # an engine without a bridge: on the host's network, on loopback
    PORT=$("$PYTHON" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
    options+=(--network host --env GRADWIRE_HOST=127.0.0.1 --env "GRADWIRE_PORT=$PORT")
fi
# NumPy kernels only, so that all sessions compute the same bits and weights can be compared with those of a single run.
options+=(--env GRADWIRE_COMPILED_KERNELS=off)
engine run --detach --name "$NAME" "${options[@]}" "$IMAGE" >/dev/null
wait_until_healthy
pid=$(state '{{.State.Pid}}')

status=0
GRADWIRE_TEST_SERVER="$GRADWIRE_URL $pid" "$PYTHON" -m tests.soak "$@" || status=1

[ "$(state '{{.State.Status}}')" = running ] || fail "the container ended with $(state '{{.State.ExitCode}}')"
[ "$(state '{{.State.OOMKilled}}')" = false ] || fail "the container met its memory limit"
[ "$(state '{{.State.Pid}}')" = "$pid" ] || fail "the server was replaced"
say "memory in use at the end: $(engine stats --no-stream --format '{{.MemUsage}}' "$NAME")"
exit "$status"
