#!/usr/bin/env bash
# Builds the CPU image and tests it the way it is deployed: without root, read-only, under limits; with the demo from
# outside, a worker that is killed, a stop, and a session that goes on after the restart.
#
#     make image-test             or             PYTHON=.venv/bin/python docker/test.sh [--install]
#
# It uses the Docker engine that answers (DOCKER_HOST or the usual socket). Where none does and this is root, it starts
# one from Debian's packages with all its data in a folder of its own, and stops it at the end; --install installs them
# first (docker.io, debootstrap). The base image is BASE_IMAGE; else, with an engine that was there, the Dockerfile's if
# it can be pulled; else one made with debootstrap. The wheels come from PYTHON's own pip, so that the build itself needs no network.
#
# Exit status: 0 passed, 1 failed, 2 PYTHON lacks what the demo needs, 77 no engine or no base image is to be had here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON=${PYTHON:-.venv/bin/python}
WORK=$(mktemp -d "${TMPDIR:-/tmp}/gradwire-image.XXXXXX")
NAME=gradwire-test-$$
IMAGE=gradwire:test-$$
UNABLE=77
GRACE_S=45
MEMORY=1g
DOCKER=docker
ENGINE_PID=""
MADE_BRIDGE=""
PORT="" # of the host, where the container has no network of its own
STARTED_AT=$SECONDS

say() { printf '%4ds  %s\n' $((SECONDS - STARTED_AT)) "$*"; }
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    engine logs --tail 30 "$NAME" >&2 2>/dev/null || true
    exit 1
}
unable() {
    printf 'cannot be tested here: %s\n' "$*" >&2
    exit "$UNABLE"
}
engine() { timeout 600 "$DOCKER" "$@"; }

clean() {
    set +e
    if engine info >/dev/null 2>&1; then
        engine rm --force --volumes "$NAME" "$NAME-early" >/dev/null 2>&1
        engine volume rm --force "$NAME" >/dev/null 2>&1
        engine image rm --force "$IMAGE" "$NAME-base" >/dev/null 2>&1
    fi
    if [ -n "$ENGINE_PID" ]; then
        kill "$ENGINE_PID" 2>/dev/null
        for _ in $(seq 100); do kill -0 "$ENGINE_PID" 2>/dev/null || break; sleep 0.2; done
        kill -9 "$ENGINE_PID" 2>/dev/null
        awk -v at="$WORK/" 'index($2, at) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mounted; do umount "$mounted"; done
        if [ -n "$MADE_BRIDGE" ]; then ip link delete docker0 2>/dev/null; fi
    fi
    rm -rf --one-file-system "$WORK"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

# ---- an engine

# Before version 23 a client built with BuildKit by itself, since then its plugin buildx does.
builds() { "$1" buildx version >/dev/null 2>&1 || "$1" --version | grep -q 'version 20\.'; }

find_client() {
    for DOCKER in docker /usr/bin/docker; do
        if command -v "$DOCKER" >/dev/null && builds "$DOCKER"; then return 0; fi
    done
    return 1
}

start_engine() {
    [ "$(id -u)" = 0 ] || unable "no Docker engine answers, and only root can start one"
    command -v dockerd >/dev/null || unable "no Docker engine answers, and none is installed (see --install)"
    [ -d /sys/class/net/docker0 ] || MADE_BRIDGE=yes
    export DOCKER_HOST="unix://$WORK/docker.sock"
    # No rule of the firewall is changed: published ports of 127.0.0.1 are served by Docker's own proxy.
    # shellcheck disable=SC2086  # several options, such as --bridge=none --storage-driver=vfs
    dockerd --host "$DOCKER_HOST" --data-root "$WORK/engine" --exec-root "$WORK/run" --pidfile "$WORK/dockerd.pid" \
        --iptables=false --ip-masq=false ${DOCKERD_OPTIONS:-} >"$WORK/dockerd.log" 2>&1 &
    ENGINE_PID=$!
    for _ in $(seq 120); do
        if engine info >/dev/null 2>&1; then return 0; fi
        kill -0 "$ENGINE_PID" 2>/dev/null || break
        sleep 0.5
    done
    tail -n 5 "$WORK/dockerd.log" >&2
    unable "the Docker engine does not start"
}

if [ "${1:-}" = --install ]; then
    [ "$(id -u)" = 0 ] || unable "only root can install an engine"
    apt-get update -qq >/dev/null || unable "Debian's packages are not to be had"
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends docker.io debootstrap iproute2 \
        >/dev/null || unable "docker.io and debootstrap cannot be installed"
fi
"$PYTHON" -c 'import gradwire, sklearn, httpx, pip' || { echo "$PYTHON cannot run the demo: make setup-demo" >&2; exit 2; }
find_client || unable "there is no Docker client with BuildKit"
engine info >/dev/null 2>&1 || start_engine
say "engine $(engine version --format '{{.Server.Version}}'), $(engine info --format '{{.Driver}}, cgroup v{{.CgroupVersion}}')"

# ---- a base image

default_base() { sed -n 's/^ARG BASE_IMAGE=//p' docker/cpu.Dockerfile; }

make_base() {
    { [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null; } ||
        unable "$(default_base) cannot be pulled, and there is no debootstrap to make a base with"
    timeout 600 debootstrap --variant=minbase --include=python3,python3-venv "${DEBIAN_SUITE:-bookworm}" \
        "$WORK/debian" >"$WORK/debootstrap.log" 2>&1 ||
        { tail -n 5 "$WORK/debootstrap.log" >&2; unable "debootstrap cannot make a base image"; }
    rm -rf "$WORK/debian/var/cache/apt" "$WORK/debian/var/lib/apt/lists" "$WORK/debian/var/log"
    mkdir -p "$WORK/debian/var/cache/apt/archives/partial" "$WORK/debian/var/lib/apt/lists/partial" "$WORK/debian/var/log"
    tar --one-file-system -C "$WORK/debian" -c . | engine import - "$NAME-base" >/dev/null
    rm -rf --one-file-system "$WORK/debian"
    BASE_IMAGE=$NAME-base
}

if [ -z "${BASE_IMAGE:-}" ]; then
    BASE_IMAGE=$(default_base)
    if [ -n "$ENGINE_PID" ] && command -v debootstrap >/dev/null; then
        make_base # no registry is asked, which where there is none takes minutes to fail
    else
        timeout 120 "$DOCKER" pull --quiet "$BASE_IMAGE" >/dev/null 2>&1 || make_base
    fi
fi
python_version=$(engine run --rm --entrypoint python3 "$BASE_IMAGE" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
say "base $BASE_IMAGE with Python $python_version"

# ---- the image

mkdir -p "$WORK/context/docker/wheels"
tar --exclude=__pycache__ -c .dockerignore pyproject.toml constraints.txt README.md LICENSE docker/cpu.Dockerfile \
    protocol/gradwire_protocol engine/gradwire_engine server/gradwire_server client/gradwire | tar -x -C "$WORK/context"
"$PYTHON" - >"$WORK/requirements.txt" <<'PY'
import tomllib
with open("pyproject.toml", "rb") as file:
    found = tomllib.load(file)
project = found["project"]
print(*found["build-system"]["requires"], *project["dependencies"], *project["optional-dependencies"]["server"], sep="\n")
PY
platforms=()
for glibc in 2_28 2_27 2_24 2_17; do platforms+=(--platform "manylinux_${glibc}_$(uname -m)"); done
timeout 600 "$PYTHON" -m pip download --quiet --disable-pip-version-check --dest "$WORK/context/docker/wheels" \
    --constraint constraints.txt --requirement "$WORK/requirements.txt" --only-binary=:all: \
    --python-version "$python_version" --implementation cp "${platforms[@]}" --platform "manylinux2014_$(uname -m)" \
    2>"$WORK/pip.log" || { tail -n 5 "$WORK/pip.log" >&2; fail "the wheels cannot be downloaded"; }
say "wheels: $(find "$WORK/context/docker/wheels" -name '*.whl' | wc -l), $(du -sh "$WORK/context/docker/wheels" | cut -f 1)"

before=$SECONDS
DOCKER_BUILDKIT=1 engine build --quiet --network none --file "$WORK/context/docker/cpu.Dockerfile" \
    --build-arg "BASE_IMAGE=$BASE_IMAGE" --build-arg "VERSION=test" --tag "$IMAGE" "$WORK/context" >"$WORK/build.log" 2>&1 ||
    { tail -n 40 "$WORK/build.log" >&2; fail "the image cannot be built"; }
megabytes() { echo "$(($(engine image inspect --format '{{.Size}}' "$1") / 1000000)) MB"; }
say "built in $((SECONDS - before)) s without a network: $(megabytes "$IMAGE"), $(megabytes "$BASE_IMAGE") of it the base"

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
    ' || fail "the image holds what it should not"
if { engine history --no-trunc "$IMAGE"; inspect '{{json .Config}}'; } |
    grep -iE 'index.url|_proxy=|passw|token|secret[^s]|://[^ ]*@|api_keys=' >&2; then
    fail "the image's history tells something about who built it"
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

state() { engine inspect --format "$1" "$NAME"; }

start_server() { # a new container on the same volume
    local began=$SECONDS
    engine run --detach --name "$NAME" "${hardened[@]}" "$IMAGE" >/dev/null
    for _ in $(seq 240); do
        [ "$(state '{{.State.Status}}')" = running ] || fail "the server ended with $(state '{{.State.ExitCode}}')"
        if [ "$(state '{{.State.Health.Status}}')" = healthy ]; then break; fi
        sleep 0.5
    done
    [ "$(state '{{.State.Health.Status}}')" = healthy ] || fail "the container is not healthy after 120 s"
    if [ -n "$PORT" ]; then GRADWIRE_URL=http://127.0.0.1:$PORT
    else GRADWIRE_URL=http://$(engine port "$NAME" 8000/tcp | head -n 1); fi
    export GRADWIRE_URL
    say "healthy after $((SECONDS - began)) s"
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
inside <<'PY' || fail "the container is not as confined as it should be"
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

# The worker of these sessions is killed; nothing of it may stay behind, and a session goes on.
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

# No limit of a session or a worker is set here, so that the container's own is met: the kernel ends the worker.
program overflow filled
[ "$(state '{{.State.Status}}')" = running ] || fail "the container did not survive what a session asked for"
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

# A stop that comes before the server listens is obeyed too: process 1 gets no signal without a handler.
engine run --detach --name "$NAME-early" "${hardened[@]}" "$IMAGE" >/dev/null
sleep 0.3
before=$SECONDS
engine stop --time 20 "$NAME-early" >/dev/null
[ "$(engine inspect --format '{{.State.ExitCode}}' "$NAME-early")" = 0 ] || fail "an early SIGTERM ends the server badly"
[ $((SECONDS - before)) -lt 15 ] || fail "an early SIGTERM is not heard"
say "memory in use at the end: $used"
say "passed"
