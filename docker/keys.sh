#!/usr/bin/env bash
# Makes the keys of a new server: docker/keys.sh FOLDER
#
# Prints an API key and an admin key, once, and writes their hashes to FOLDER/api_keys and FOLDER/admin_keys. The files
# hold nothing that opens the server, and the container's user has to be able to read them.
set -euo pipefail

folder=${1:?"usage: docker/keys.sh FOLDER"}
mkdir -p "$folder"
for name in api_keys admin_keys; do
    if [ -e "$folder/$name" ]; then
        echo "$folder/$name is there already: nothing was changed" >&2
        exit 1
    fi
done
for name in api_keys admin_keys; do
    key="gw_$(head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n')"
    printf 'sha256:%s\n' "$(printf %s "$key" | sha256sum | cut -d ' ' -f 1)" >"$folder/$name"
    chmod 0444 "$folder/$name"
    printf '%-11s %s\n' "$name:" "$key"
done
