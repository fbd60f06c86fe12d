#!/usr/bin/env bash
# Creates the keys of a new server: docker/keys.sh FOLDER
#
# Prints an API key and an admin key once and writes their hashes to FOLDER/api_keys and FOLDER/admin_keys. Hashes do
# not grant access, and the container's user must be able to read the files.
set -euo pipefail

folder=${1:?"usage: docker/keys.sh FOLDER"}
mkdir -p "$folder"
for name in api_keys admin_keys; do
    if [ -e "$folder/$name" ]; then
        echo "$folder/$name already exists: nothing was changed" >&2
        exit 1
    fi
done
for name in api_keys admin_keys; do
    key="gw_$(head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n')"
    printf 'sha256:%s\n' "$(printf %s "$key" | sha256sum | cut -d ' ' -f 1)" >"$folder/$name"
    chmod 0444 "$folder/$name"
    printf '%-11s %s\n' "$name:" "$key"
done
