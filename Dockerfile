# One container is one worker: `kcl-spark run` as PID 1, the daemon's jars inside, a user without rights.
#
#   bin/fetch-daemon --to .jars
#   docker build -t kcl-spark .
#   docker run -v $PWD/flights.py:/pipeline/flights.py kcl-spark /pipeline/flights.py --stream flights
#
# Give it a stop timeout of the grace and ten seconds more (docker run --stop-timeout 40): on SIGTERM what has been read
# is committed first. tests/container builds this and runs it.
FROM docker.io/library/debian:bookworm-slim

# Where pip has to trust a certificate of the network's own: a file inside the build. Empty changes nothing.
ARG PIP_CERT

RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates openjdk-17-jre-headless python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

COPY LICENSE README.md constraints.txt pyproject.toml setup.cfg /src/
COPY kcl_spark /src/kcl_spark
RUN python3 -m venv /opt/kcl-spark \
    && /opt/kcl-spark/bin/pip install --no-cache-dir --disable-pip-version-check --use-pep517 -c /src/constraints.txt '/src[connect]' \
    && rm -rf /src

# Fetched by Maven, which checks them, and not by the build: it needs no Maven then, and no network but pip's and apt's.
COPY .jars /opt/daemon

RUN useradd --uid 10001 --create-home worker && mkdir /pipeline && chown worker /pipeline
ENV PATH=/opt/kcl-spark/bin:$PATH KCL_SPARK_JARS=/opt/daemon XDG_RUNTIME_DIR=/tmp
USER worker
WORKDIR /pipeline
STOPSIGNAL SIGTERM
ENTRYPOINT ["kcl-spark", "run"]
CMD ["--help"]
