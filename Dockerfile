# Two images from one file: `service` (HTTP, no torch) and `worker` (algorithms).
#   docker build --target service .    docker build --target worker .
FROM python:3.11.14-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /app
RUN useradd --system --uid 10001 --home-dir /data --create-home scrim
COPY constraints.txt pyproject.toml README.md ./

FROM base AS service
COPY scrim/spec scrim/spec
COPY synth/__init__.py synth/__init__.py
COPY service service
COPY scrim scrim
COPY migrations migrations
RUN pip install --constraint constraints.txt --editable '.[service]'
USER scrim
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
CMD ["python", "-m", "service", "serve", "--host", "0.0.0.0"]

FROM base AS worker
COPY synth synth
COPY service service
COPY worker worker
COPY scrim scrim
COPY migrations migrations
# A machine without a GPU saves gigabytes with an index of CPU builds of torch.
ARG TORCH_INDEX=
RUN pip install --constraint constraints.txt ${TORCH_INDEX:+--extra-index-url ${TORCH_INDEX}} --editable '.[worker]'
USER scrim
VOLUME /data
CMD ["python", "-m", "worker"]
