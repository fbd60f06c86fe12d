#!/usr/bin/env bash
# Builds the CPU image and tests it as it is deployed: non-root, read-only, under limits; with the demo from outside, a
# killed worker, a stop, and a session that continues after the restart.
#
#     make image-test             or             PYTHON=.venv/bin/python docker/test.sh [--install]
#
# Exit status: 0 passed, 1 failed, 2 PYTHON lacks the demo's packages, 77 no engine or no base image is available.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. docker/image.sh

MEMORY=1g
if [ "${1:-}" = --install ]; then install_engine; fi
"$PYTHON" -c 'import gradwire, sklearn, httpx, pip' || { echo "$PYTHON cannot run the demo: make setup-demo" >&2; exit 2; }
find_engine
find_base
build_image

inspect() { engine image inspect --format "$1" "$IMAGE"; }
[ "$(inspect '{{.Config.User}}')" = 10001:10001 ] || fail "the image's user is $(inspect '{{.Config.User}}')"
[ "$(inspect '{{.Config.StopSignal}}')" = SIGTERM ] || fail "the image has no stop signal"
[ "$(inspect '{{index .Config.Labels "org.opencontainers.image.version"}}')" = test ] || fail "the image has no labels"
# shellcheck disable=SC2016  # the container's shell expands this
engine run --rm --network none --read-only --entrypoint sh "$IMAGE" -euc '
    for tool in pip pip3 gcc g++ cc make curl wget git; do
        if command -v $tool; then echo "$tool is in the image"; exit 1; fi
    done
    for python in /opt/gradwire/bin/python python3; do
        if $python -m pip --version 2>/dev/null; then echo "pip is in the image"; exit 1; fi
    done
    if [ -e /src ] || [ -e /dist ] || [ -e /root/.cache ]; then echo "the build left something"; exit 1; fi
    if [ -n "$(find /opt/gradwire -writable ! -type l 2>/dev/null | head -n 1)" ]; then echo "the code is writable"; exit 1; fi
    ' || fail "the image contains files that it should not"
if { engine history --no-trunc "$IMAGE"; inspect '{{json .Config}}'; } |
    grep -iE 'index.url|_proxy=|passw|token|secret[^s]|://[^ ]*@|api_keys=' >&2; then
    fail "the image's history reveals something about its builder"
fi
say "no build tools, no pip, no secrets; user 10001, code not writable"

# ---- a container

mkdir "$WORK/keys"
GRADWIRE_API_KEY=$(docker/keys.sh "$WORK/keys" | awk '/^api_keys:/ { print $2 }')
export GRADWIRE_API_KEY
unset GRADWIRE_URL GRADWIRE_DATA_DIR
chmod 755 "$WORK" # the container's user reads the key files
# shellcheck disable=SC2054  # the commas belong to the tmpfs
hardened=(
    --read-only --tmpfs /tmp:size=64m,mode=1777,noexec,nosuid,nodev
    --cap-drop ALL --security-opt no-new-privileges --memory "$MEMORY" --memory-swap "$MEMORY" --pids-limit 256
    --volume "$NAME:/data" --volume "$WORK/keys:/run/secrets:ro"
    --env GRADWIRE_API_KEYS_FILE=/run/secrets/api_keys --env GRADWIRE_ADMIN_KEYS_FILE=/run/secrets/admin_keys
    --env OMP_NUM_THREADS=2 --env OPENBLAS_NUM_THREADS=2
)
if engine network inspect bridge >/dev/null 2>&1; then
    hardened+=(--publish 127.0.0.1::8000)
else # an engine without a bridge: on the host's network, on loopback
    PORT=$("$PYTHON" -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
    hardened+=(--network host --env GRADWIRE_HOST=127.0.0.1 --env "GRADWIRE_PORT=$PORT")
fi

start_server() { # a new container on the same volume
    engine run --detach --name "$NAME" "${hardened[@]}" "$IMAGE" >/dev/null
    wait_until_healthy
}

stop_server() {
    local began=$SECONDS
    engine stop --time "$GRACE_S" "$NAME" >/dev/null
    [ "$(state '{{.State.ExitCode}}')" = 0 ] || fail "SIGTERM ended the server with $(state '{{.State.ExitCode}}')"
    say "SIGTERM: exit 0 after $((SECONDS - began)) s"
}

program() { # ACTION SESSION
    timeout 120 "$PYTHON" docker/session.py "$1" "$WORK/$2.json" >"$WORK/program.log" 2>&1 ||
        { tail -n 20 "$WORK/program.log" >&2; fail "a program cannot $1 the session to be $2"; }
    say "session to be $2: $(tail -n 1 "$WORK/program.log")"
}

inside() { engine exec -i "$NAME" python -; }

start_server
first=$(state '{{.State.Pid}}')
case $GRADWIRE_URL in http://127.0.0.1:*) ;; *) fail "the port is published on $GRADWIRE_URL" ;; esac
inside <<'PY' || fail "the container is not confined"
from pathlib import Path

processes = [each for each in Path("/proc").iterdir() if each.name.isdigit()]
for each in processes:
    try:
        status = dict(line.split(":", 1) for line in (each / "status").read_text().splitlines())
    except OSError:  # it has ended
        continue
    for field, wanted in (("Uid", "10001"), ("CapEff", "0" * 16), ("CapBnd", "0" * 16), ("NoNewPrivs", "1"), ("Seccomp", "2")):
        found = status[field].split()[0]
        assert found == wanted, f"{field} of process {each.name} is {found}"
for place in ("/", "/opt/gradwire", "/run/secrets"):
    try:
        Path(place, "written").write_text("")
    except OSError:
        continue
    raise AssertionError(f"{place} can be written to")
PY
say "no capabilities, no new privileges, nothing to write on but /data and /tmp"

timeout 300 "$PYTHON" examples/digits.py >"$WORK/demo.log" 2>&1 || { tail -n 20 "$WORK/demo.log" >&2; fail "the demo fails"; }
say "demo from outside: $(tail -n 1 "$WORK/demo.log")"
for fate in killed restarted crashed; do program begin "$fate"; done

# Kill the worker of these sessions: nothing of it may remain, and a session must continue.
inside <<'PY' || fail "a killed worker is not replaced"
import os
import signal
import time
from pathlib import Path


def processes():
    for each in Path("/proc").iterdir():
        if each.name.isdigit() and int(each.name) not in (1, os.getpid()):
            try:
                yield int(each.name), (each / "cmdline").read_bytes(), (each / "stat").read_text().rpartition(")")[2].split()[0]
            except FileNotFoundError:
                continue


workers = [number for number, command, _ in processes() if b"gradwire_server.workers" in command]
assert workers, "there is no worker process"
os.kill(workers[0], signal.SIGKILL)
for _ in range(100):
    time.sleep(0.1)
    if not [number for number, _, state in processes() if number == workers[0] or state == "Z"]:
        break
else:
    raise AssertionError("process 1 does not reap its workers")
PY
say "a worker was killed"
program resume killed

# Sessions and workers have no limit here, so that the container's own applies: the kernel ends the worker.
program overflow filled
[ "$(state '{{.State.Status}}')" = running ] || fail "the container did not survive a session's memory use"
[ "$(state '{{.State.Pid}}')" = "$first" ] || fail "the server was replaced"
stop_server
engine logs "$NAME" 2>&1 | grep -q "$GRADWIRE_API_KEY" && fail "a key is in the log"
engine rm "$NAME" >/dev/null

start_server
program resume restarted
engine kill --signal KILL "$NAME" >/dev/null
engine rm "$NAME" >/dev/null
say "the container was killed"

start_server
program resume crashed
used=$(engine stats --no-stream --format '{{.MemUsage}}' "$NAME")
stop_server

# A stop before the server listens must work too: process 1 gets no signal without a handler.
engine run --detach --name "$NAME-early" "${hardened[@]}" "$IMAGE" >/dev/null
sleep 0.3
before=$SECONDS
engine stop --time 20 "$NAME-early" >/dev/null
[ "$(engine inspect --format '{{.State.ExitCode}}' "$NAME-early")" = 0 ] || fail "an early SIGTERM ends the server badly"
[ $((SECONDS - before)) -lt 15 ] || fail "an early SIGTERM is ignored"
say "memory in use at the end: $used"
say "passed"
