# syntax=docker/dockerfile:1
# The tested set of versions (constraints.txt) on Python 3.11; see docs/installing.md.
#   docker build -t fog .                                  CPU build of torch
#   docker build -t fog:cuda --build-arg TORCH=cuda .      CUDA build; run with --gpus all
FROM python:3.11-slim-bookworm
ARG TORCH=cpu

# A C++ compiler for compiled updates, OpenGL for videos.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        g++ libegl1 libgles2 libosmesa6 libgl1-mesa-dri \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/fog
COPY constraints.txt ./
# First and by itself: it is the largest layer and changes least. The package index has CUDA's build.
RUN case "$TORCH" in \
        cpu) index="--index-url https://download.pytorch.org/whl/cpu --extra-index-url https://pypi.org/simple" ;; \
        cuda) index="" ;; \
        *) echo "TORCH must be cpu or cuda, not $TORCH" >&2; exit 2 ;; \
    esac \
    && version=$(sed -n 's/^torch==//p' constraints.txt) \
    && if [ "$TORCH" = cpu ]; then version="$version+cpu"; fi \
    && pip install --no-cache-dir -c constraints.txt $index "torch==$version"
COPY . .
RUN pip install --no-cache-dir -c constraints.txt .

# Runs are written to ./runs: mount a folder there.
WORKDIR /work
ENTRYPOINT ["fog"]
CMD ["doctor"]
