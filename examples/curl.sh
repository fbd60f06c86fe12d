#!/usr/bin/env bash
# Gradients from a shell: create a session, send one JSON frame (forward, backward, read a gradient), delete it.
#
# Uses the server that GRADWIRE_URL and GRADWIRE_API_KEY name, or starts one. Needs curl and, to start a server and
# parse JSON, Python: PYTHON, or the one in .venv.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [[ -z ${PYTHON:-} ]]; then
    PYTHON=python3
    [[ -x $here/.venv/bin/python ]] && PYTHON=$here/.venv/bin/python
fi
scratch=$(mktemp -d)
server=
session=

finish() {
    local status=$?
    if [[ -n $session ]]; then
        call -X DELETE "$GRADWIRE_URL/v1/sessions/$session" && echo "deleted session $session"
    fi
    if [[ -n $server ]]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$scratch"
    exit "$status"
}
trap finish EXIT

# Send a request with the key. On failure, print the server's problem document and exit.
call() {
    : >"$scratch/body"
    if ! curl --silent --show-error --fail-with-body --output "$scratch/body" \
        --header "Authorization: Bearer $GRADWIRE_API_KEY" --header "Content-Type: application/json" "$@"; then
        cat "$scratch/body" >&2
        echo >&2
        return 1
    fi
    cat "$scratch/body"
}

# Evaluate a Python expression of `it`, the JSON on stdin.
pick() {
    "$PYTHON" -c 'import json, sys; it = json.load(sys.stdin); print('"$1"')'
}

if [[ -z ${GRADWIRE_URL:-} ]]; then
    GRADWIRE_LOG_LEVEL=warning "$PYTHON" -m gradwire_server --port 0 --announce >"$scratch/announced" &
    server=$!
    for _ in $(seq 300); do
        [[ -s $scratch/announced ]] && break
        kill -0 "$server" 2>/dev/null || { echo "the server did not start" >&2; exit 1; }
        sleep 0.1
    done
    GRADWIRE_URL=$(pick 'it["url"]' <"$scratch/announced")
    GRADWIRE_API_KEY=${GRADWIRE_API_KEY:-$(pick 'it["api_key"]' <"$scratch/announced")}
fi
: "${GRADWIRE_API_KEY:?set GRADWIRE_API_KEY to a key of $GRADWIRE_URL}"

call -X POST "$GRADWIRE_URL/v1/sessions" -d '{"device": "cpu"}' >"$scratch/created"
session=$(pick 'it["id"]' <"$scratch/created")
echo "created session $session"

# x = [[1, 2], [3, 4]]; y = (x ** 2).mean(); y.backward(); x.grad
#
# A record is an op, its arguments by name, and the name of its result. Names of one frame are there for the next.
frame() {
    call -X POST "$GRADWIRE_URL/v1/sessions/$session/frames" -d @- >"$scratch/reply"
    if [[ $(pick 'len(it.get("errors", []))' <"$scratch/reply") != 0 ]]; then
        cat "$scratch/reply" >&2
        return 1
    fi
}

frame <<'JSON'
{
  "ops": [
    {"op": "upload", "data": [[1.0, 2.0], [3.0, 4.0]], "as": "x"},
    {"op": "requires_grad_", "self": "x"},
    {"op": "pow", "self": "x", "exponent": 2, "as": "squares"},
    {"op": "mean", "self": "squares", "as": "y"},
    {"op": "backward", "tensors": ["y"]},
    {"op": "grad_of", "self": "x", "as": "gradient"}
  ],
  "reads": ["gradient"]
}
JSON
echo "x.grad = $(pick 'it["values"][0]["values"]' <"$scratch/reply")"

# Ten steps of gradient descent on the same x. The rate is a number like any other; a step is one frame.
for step in $(seq 10); do
    frame <<JSON
{
  "ops": [
    {"op": "set_grad", "self": "x"},
    {"op": "pow", "self": "x", "exponent": 2, "as": "squares"},
    {"op": "mean", "self": "squares", "as": "y"},
    {"op": "backward", "tensors": ["y"]},
    {"op": "sgd_step", "params": ["x"], "lr": $((11 - step))e-1}
  ],
  "reads": ["y"],
  "drops": ["squares"]
}
JSON
done
echo "after 10 steps: $(pick 'it["values"][0]["values"]' <"$scratch/reply")"
