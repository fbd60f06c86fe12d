# Sourced by test.sh and soak.sh: finds an engine and a base image, and builds the server's image.
#
# It uses a running Docker engine (DOCKER_HOST or the usual socket). Without one, root starts one from Debian's
# packages (install_engine installs them), with its data in a temporary folder, and stops it at the end. The base image
# is BASE_IMAGE; else, with a running engine, the Dockerfile's if it can be pulled; else one made with debootstrap.
# PYTHON's pip downloads the wheels, so that the build itself needs no network.
# shellcheck shell=bash disable=SC2034  # those who source this file use the variables

PYTHON=${PYTHON:-.venv/bin/python}
WORK=$(mktemp -d "${TMPDIR:-/tmp}/gradwire-image.XXXXXX")
NAME=gradwire-test-$$
IMAGE=gradwire:test-$$
UNABLE=77
GRACE_S=45
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

install_engine() {
    [ "$(id -u)" = 0 ] || unable "only root can install an engine"
    apt-get update -qq >/dev/null || unable "Debian's packages are unavailable"
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends docker.io debootstrap iproute2 \
        >/dev/null || unable "docker.io and debootstrap cannot be installed"
}

find_engine() { # a running one, or a new one
    find_client || unable "there is no Docker client with BuildKit"
    engine info >/dev/null 2>&1 || start_engine
    say "engine $(engine version --format '{{.Server.Version}}'), $(engine info --format '{{.Driver}}, cgroup v{{.CgroupVersion}}')"
}

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

find_base() { # sets BASE_IMAGE and python_version
    if [ -z "${BASE_IMAGE:-}" ]; then
        BASE_IMAGE=$(default_base)
        if [ -n "$ENGINE_PID" ] && command -v debootstrap >/dev/null; then
            make_base # a pull without network takes minutes to fail
        else
            timeout 120 "$DOCKER" pull --quiet "$BASE_IMAGE" >/dev/null 2>&1 || make_base
        fi
    fi
    python_version=$(engine run --rm --entrypoint python3 "$BASE_IMAGE" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    say "base $BASE_IMAGE with Python $python_version"
}

# ---- the image

megabytes() { echo "$(($(engine image inspect --format '{{.Size}}' "$1") / 1000000)) MB"; }

build_image() {
    mkdir -p "$WORK/context/docker/wheels"
    tar --exclude=__pycache__ -c .dockerignore pyproject.toml constraints.txt README.md LICENSE docker/cpu.Dockerfile \
        protocol/gradwire_protocol engine/gradwire_engine server/gradwire_server client/gradwire client/gradwire_torch | tar -x -C "$WORK/context"
    "$PYTHON" - >"$WORK/requirements.txt" <<'PY'
import tomllib
with open("pyproject.toml", "rb") as file:
    found = tomllib.load(file)
project = found["project"]
print(*found["build-system"]["requires"], *project["dependencies"], *project["optional-dependencies"]["server"], sep="\n")
PY
    local platforms=()
    local glibc
    for glibc in 2_28 2_27 2_24 2_17; do platforms+=(--platform "manylinux_${glibc}_$(uname -m)"); done
    timeout 600 "$PYTHON" -m pip download --quiet --disable-pip-version-check --dest "$WORK/context/docker/wheels" \
        --constraint constraints.txt --requirement "$WORK/requirements.txt" --only-binary=:all: \
        --python-version "$python_version" --implementation cp "${platforms[@]}" --platform "manylinux2014_$(uname -m)" \
        2>"$WORK/pip.log" || { tail -n 5 "$WORK/pip.log" >&2; fail "the wheels cannot be downloaded"; }
    say "wheels: $(find "$WORK/context/docker/wheels" -name '*.whl' | wc -l), $(du -sh "$WORK/context/docker/wheels" | cut -f 1)"

    local before=$SECONDS
    DOCKER_BUILDKIT=1 engine build --quiet --network none --file "$WORK/context/docker/cpu.Dockerfile" \
        --build-arg "BASE_IMAGE=$BASE_IMAGE" --build-arg "VERSION=test" --tag "$IMAGE" "$WORK/context" >"$WORK/build.log" 2>&1 ||
        { tail -n 40 "$WORK/build.log" >&2; fail "the image cannot be built"; }
    say "built in $((SECONDS - before)) s without a network: $(megabytes "$IMAGE"), $(megabytes "$BASE_IMAGE") of it the base"
}

# ---- a container

state() { engine inspect --format "$1" "$NAME"; }

wait_until_healthy() { # sets and exports GRADWIRE_URL
    local began=$SECONDS
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
