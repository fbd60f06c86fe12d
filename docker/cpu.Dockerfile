# The gradwire server on a CPU. From the top of the repository:
#
#     docker build -f docker/cpu.Dockerfile -t gradwire:cpu .
#
# Tags can change, digests cannot. Pin what you deploy:
#
#     docker buildx imagetools inspect python:3.12-slim-bookworm --format '{{.Manifest.Digest}}'
#     docker build -f docker/cpu.Dockerfile --build-arg BASE_IMAGE=python:3.12-slim-bookworm@sha256:... -t gradwire:cpu .
#
# Any image with Python 3.11 to 3.13, its venv module and glibc works. For a private package index pass a pip
# configuration, which stays out of all layers: --secret id=pip_conf,src=$HOME/.config/pip/pip.conf
# Without an index, put all wheels into docker/wheels, as docker/test.sh does.
#
# For a fleet (docs/fleet.md), add the extra with Ray and the object store:
#
#     docker build -f docker/cpu.Dockerfile --build-arg EXTRAS=cluster -t gradwire:fleet .
ARG BASE_IMAGE=python:3.12-slim-bookworm

FROM ${BASE_IMAGE} AS base


FROM base AS build
ARG EXTRAS=server
WORKDIR /src
COPY . .
# Two environments: one with pip, which stays here, and one without, which the final stage copies.
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    set -eu; \
    export PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore; \
    if ls docker/wheels/*.whl >/dev/null 2>&1; then export PIP_NO_INDEX=1 PIP_FIND_LINKS=/src/docker/wheels; fi; \
    python3 -m venv /build; \
    python3 -m venv --without-pip /opt/gradwire; \
    /build/bin/pip wheel --no-deps --wheel-dir /dist .; \
    /build/bin/pip --python /opt/gradwire/bin/python install --constraint constraints.txt \
        "gradwire[${EXTRAS}] @ file://$(ls /dist/gradwire-*.whl)"; \
    /opt/gradwire/bin/gradwire-server --version


FROM base
# Remove the base's pip: the server never installs anything. /data belongs to the user, and so do new volumes. Login
# shells, with which KubeRay starts Ray, reset PATH.
RUN set -eu; \
    if python3 -m pip --version >/dev/null 2>&1; then python3 -m pip uninstall --yes --quiet pip setuptools wheel; fi; \
    groupadd --gid 10001 gradwire; \
    useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin gradwire; \
    install --directory --owner 10001 --group 10001 --mode 0700 /data; \
    echo 'PATH=/opt/gradwire/bin:$PATH' >/etc/profile.d/gradwire.sh
COPY --from=build /opt/gradwire /opt/gradwire

ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="gradwire" \
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
    GRADWIRE_LOG_FORMAT=json

USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-m", "gradwire_server.health", "/readyz"]
ENTRYPOINT ["gradwire-server"]
