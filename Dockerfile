# Two images from one file: `service` (HTTP, no torch) and `worker` (algorithms).
#   docker build --target service .    docker build --target worker .
FROM python:3.11.14-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
RUN useradd --system --uid 10001 --home-dir /data --create-home scrim
# Older versions of pip cannot install a dependency group.
RUN pip install pip==26.3
COPY constraints.txt pyproject.toml ./

# Both packages, as `make dist` builds them.
FROM base AS packages
COPY hatch_build.py README.md LICENSE ./
COPY scrim scrim
COPY synth synth
COPY service service
COPY worker worker
COPY migrations migrations
RUN pip wheel --no-deps --wheel-dir /packages ./scrim .

FROM base AS service
COPY --from=packages /packages /packages
RUN pip install --constraint constraints.txt --group service /packages/scrim-*.whl
# The dependencies of scrim-server include torch; the group above is what the service needs of them.
RUN pip install --no-deps /packages/scrim_server-*.whl
USER scrim
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["python", "-m", "service", "serve", "--host", "0.0.0.0"]

FROM base AS worker
COPY --from=packages /packages /packages
# A machine without a GPU saves gigabytes with an index of CPU builds of torch.
ARG TORCH_INDEX=
RUN pip install --constraint constraints.txt ${TORCH_INDEX:+--extra-index-url ${TORCH_INDEX}} /packages/*.whl
USER scrim
VOLUME /data
CMD ["python", "-m", "worker"]
