# The gradwire server on an NVIDIA GPU. From the top of the repository, on a machine with the NVIDIA Container Toolkit:
#
#     docker build -f docker/cuda.Dockerfile -t gradwire:cuda .
#     docker run --gpus all -p 127.0.0.1:8000:8000 -v gradwire:/data gradwire:cuda
#
# For a fleet (docs/fleet.md): --build-arg EXTRAS=cuda12,cluster -t gradwire:fleet-cuda
#
# The stages are those of cpu.Dockerfile; see there for pinning the base, package indexes and wheels. The base has the
# CUDA libraries but no compiler: CuPy compiles kernels with NVRTC, one of these libraries. CuPy's wheel lacks the CUDA
# headers; the package CUDA_HEADERS has them, in the version of the base.
ARG BASE_IMAGE=nvidia/cuda:12.9.1-runtime-ubuntu24.04

FROM ${BASE_IMAGE} AS base
RUN set -eu; \
    if ! command -v python3 >/dev/null; then \
        apt-get update; \
        DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends python3; \
        rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log /var/cache/debconf/*-old; \
    fi


FROM base AS build
ARG CUDA_HEADERS="nvidia-cuda-runtime-cu12==12.9.*"
RUN set -eu; \
    if ! python3 -c 'import ensurepip' 2>/dev/null; then \
        apt-get update; \
        DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends python3-venv; \
    fi
ARG EXTRAS=cuda12
WORKDIR /src
COPY . .
# Two environments: one with pip, which stays here, and one without, which is copied.
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    set -eu; \
    export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore; \
    if ls docker/wheels/*.whl >/dev/null 2>&1; then export PIP_NO_INDEX=1 PIP_FIND_LINKS=/src/docker/wheels; fi; \
    python3 -m venv /build; \
    python3 -m venv --without-pip /opt/gradwire; \
    /build/bin/pip wheel --no-deps --wheel-dir /dist .; \
    /build/bin/pip --python /opt/gradwire/bin/python install --constraint constraints.txt \
        "${CUDA_HEADERS}" "gradwire[${EXTRAS}] @ file://$(ls /dist/gradwire-*.whl)"; \
    /opt/gradwire/bin/gradwire-server --version


FROM base
# The base may bring pip; the server never installs anything. /data belongs to the user, so that a new volume does too.
# Login shells, with which KubeRay starts Ray, reset PATH.
RUN set -eu; \
    if python3 -m pip --version >/dev/null 2>&1; then python3 -m pip uninstall --yes --quiet pip setuptools wheel; fi; \
    groupadd --gid 10001 gradwire; \
    useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin gradwire; \
    install --directory --owner 10001 --group 10001 --mode 0700 /data; \
    echo 'PATH=/opt/gradwire/bin:$PATH' >/etc/profile.d/gradwire.sh
COPY --from=build /opt/gradwire /opt/gradwire

ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="gradwire-cuda" \
      org.opencontainers.image.description="Autograd as a service: sessions of tensors and their gradients over HTTP and WebSocket" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"

ENV PATH=/opt/gradwire/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    GRADWIRE_HOST=0.0.0.0 \
    GRADWIRE_PORT=8000 \
    GRADWIRE_DATA_DIR=/data \
    GRADWIRE_SESSION_HOST=process \
    GRADWIRE_LOG_FORMAT=json \
    CUPY_CACHE_DIR=/data/cupy \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility

USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-m", "gradwire_server.health", "/readyz"]
ENTRYPOINT ["gradwire-server"]
