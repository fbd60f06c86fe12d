# The gradwire server on a CPU. From the top of the repository:
#
#     docker build -f docker/cpu.Dockerfile -t gradwire:cpu .
#
# A tag can be given another content later; a digest cannot. Pin what you deploy:
#
#     docker buildx imagetools inspect python:3.12-slim-bookworm --format '{{.Manifest.Digest}}'
#     docker build -f docker/cpu.Dockerfile --build-arg BASE_IMAGE=python:3.12-slim-bookworm@sha256:... -t gradwire:cpu .
#
# Any image with Python 3.11 to 3.13, its venv module and glibc will do. A package index of your own is named by a pip
# configuration, which is there during the build and in no layer: --secret id=pip_conf,src=$HOME/.config/pip/pip.conf
# Where no index can be reached, put all wheels in docker/wheels (docker/test.sh does).
ARG BASE_IMAGE=python:3.12-slim-bookworm

FROM ${BASE_IMAGE} AS base


FROM base AS build
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
        "gradwire[server] @ file://$(ls /dist/gradwire-*.whl)"; \
    /opt/gradwire/bin/gradwire-server --version


FROM base
# The base may bring pip; the server never installs anything. /data belongs to the user, so that a new volume does too.
RUN set -eu; \
    if python3 -m pip --version >/dev/null 2>&1; then python3 -m pip uninstall --yes --quiet pip setuptools wheel; fi; \
    groupadd --gid 10001 gradwire; \
    useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin gradwire; \
    install --directory --owner 10001 --group 10001 --mode 0700 /data
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
