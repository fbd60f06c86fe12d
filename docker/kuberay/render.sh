#!/usr/bin/env bash
# Writes fleet.yaml: the chart's fleet with two gateways and a shared volume, for clusters without Helm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

{
    cat <<'HEAD'
# A fleet on Kubernetes, without Helm; see docs/fleet.md. Needs the KubeRay operator (1.6 or newer), the Secret
# gradwire-keys, a storage class with ReadWriteMany, and the image of docker/cpu.Dockerfile with EXTRAS=cluster.
#
# Rendered by docker/kuberay/render.sh, which runs:
#
#     helm template mine docker/helm/gradwire --set fleet.enabled=true --set replicaCount=2 \
#         --set keys.existingSecret=gradwire-keys --set settings.durability=durable
HEAD
    helm template mine docker/helm/gradwire --kube-version 1.29.0 --set fleet.enabled=true --set replicaCount=2 \
        --set keys.existingSecret=gradwire-keys --set settings.durability=durable
} >docker/kuberay/fleet.yaml
