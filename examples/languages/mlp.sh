#!/usr/bin/env bash
# A digit classifier, trained with curl: bash mlp.sh digits.json
#
# Needs GRADWIRE_URL and GRADWIRE_API_KEY, the file that examples/digits_data.py writes, curl and jq.
set -euo pipefail

epochs=5 rows=1344 batch=64 step=0
params='["w1", "b1", "w2", "b2"]'
api=$GRADWIRE_URL/v1/sessions
key="Authorization: Bearer $GRADWIRE_API_KEY"

post() { # URL BODY: sets `value` to the first value that a frame reads, or to a session's id
    reply=$(curl -sS --fail-with-body -H "$key" -H "Content-Type: application/json" --data-binary "$2" "$1") &&
        value=$(jq -r 'if .errors then halt_error else .id // .values[0].values end' <<<"$reply") ||
        { echo "$reply" >&2; exit 1; }
}

network() { # the records that compute the scores of images
    echo '["linear", ["'"$1"'", "w1", "b1"], "z"], ["relu", ["z"], "h"], ["linear", ["h", "w2", "b2"], "scores"]'
}

post "$api" '{}'
session=$api/$value
trap 'curl -sS -X DELETE -H "$key" "$session"' EXIT

post "$session/frames" @"${1:-digits.json}"
post "$session/frames" "$(jq '{ops: [.[] | ["requires_grad_", [.]], ["zeros_like", [.], "mean." + .],
    ["zeros_like", [.], "square." + .]]}' <<<"$params")"

for ((epoch = 1; epoch <= epochs; epoch++)); do
    losses=()
    for ((start = 0; start < rows; start += batch)); do
        post "$session/frames" '{"ops": [
            ["narrow", ["train_x", 0, '$start', '$batch'], "x"],
            ["narrow", ["train_y", 0, '$start', '$batch'], "y"],
            '"$(network x)"',
            ["cross_entropy", ["scores", "y"], "loss"],
            ["zero_grad", ['"$params"']],
            ["backward", ["loss"]],
            {"op": "adam_step", "params": '"$params"', "lr": 0.01, "step": '$((++step))',
             "exp_avgs": ["mean.w1", "mean.b1", "mean.w2", "mean.b2"],
             "exp_avg_sqs": ["square.w1", "square.b1", "square.w2", "square.b2"]}
        ], "reads": ["loss"]}'
        losses+=("$value")
    done
    printf 'epoch %d  loss %.7f\n' "$epoch" "$(jq -s 'add / length' <<<"${losses[*]}")"
done

post "$session/frames" '{"ops": ['"$(network test_x)"',
    ["argmax", ["scores", 1], "guess"],
    ["eq", ["guess", "test_y"], "right"],
    {"op": "mean", "self": "right", "dtype": "float32", "as": "accuracy"}
], "reads": ["accuracy"]}'
printf 'accuracy %.4f\n' "$value"
