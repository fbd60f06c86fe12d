#!/usr/bin/env bash
# Creates the secrets inside a fleet: docker/fleet_secrets.sh FOLDER
#
# ray_token lets processes join Ray, where they may run any code; store_access_key and store_secret_key open the object
# store. They are usable as they are, so only the owner may enter FOLDER. API keys are docker/keys.sh's.
set -euo pipefail

folder=${1:?"usage: docker/fleet_secrets.sh FOLDER"}
mkdir -p "$folder"
chmod 0700 "$folder"
names=(ray_token store_access_key store_secret_key)
for name in "${names[@]}"; do
    if [ -e "$folder/$name" ]; then
        echo "$folder/$name already exists: nothing was changed" >&2
        exit 1
    fi
done
for name in "${names[@]}"; do
    # Hexadecimal, without a line break: Ray and the store take the file's content as it is.
    head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$folder/$name"
    chmod 0444 "$folder/$name" # the containers' user reads the mounted file, and cannot enter the folder
done
