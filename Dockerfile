# Two images of the same project:
#   docker build --target cpu -t bcnn .              Debian 11's own Caffe (the default)
#   docker build --target gpu -t bcnn:gpu .          Ubuntu 18.04's Caffe with CUDA
#   docker run --rm -v "$PWD/runs:/bcnn/runs" -v "$PWD/data:/bcnn/data" bcnn tools/run_all.sh
#   docker run --rm --gpus all ... bcnn:gpu tools/run_all.sh --profile paper
# Add --user "$(id -u):$(id -g)" where the mounted folders are not of user 1000.
# MIRROR is the base URI of a Debian (cpu) or Ubuntu (gpu) mirror, for the day when the
# image's own sources no longer carry its release.

FROM ubuntu:18.04 AS gpu-base
ARG MIRROR=
# Caffe with CUDA stands in multiverse and is built for Python 3.6.
RUN if [ -n "$MIRROR" ]; then echo "deb $MIRROR bionic main universe multiverse" > /etc/apt/sources.list; fi \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        caffe-cuda python3-caffe-cuda libopenblas-base python3-pip python3-dev python3-setuptools gcc g++ \
 && ln -s python3 /usr/bin/python \
 && rm -rf /var/lib/apt/lists/*
# The other packages in the versions of tools/packages.txt (column 4 where Python 3.6 needs it).
# pip 21.3.1 is the last for Python 3.6; the one of 18.04 is too old for some wheels.
COPY tools/packages.txt /tmp/packages.txt
RUN python3 -m pip install --no-cache-dir pip==21.3.1 \
 && sed 's/#.*//' /tmp/packages.txt | awk '$2 {print $2 "==" ($4 ? $4 : $3)}' > /tmp/pins.txt \
 && python3 -m pip install --no-cache-dir -r /tmp/pins.txt
# Caffe is linked to Ubuntu's libprotobuf 3.0, pip's protobuf brings its own C++ code: the
# pure Python implementation keeps the two out of one process.
ENV PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility

FROM debian:bullseye-slim AS cpu-base
ARG MIRROR=
COPY tools/packages.txt /tmp/packages.txt
RUN if [ -n "$MIRROR" ]; then echo "deb $MIRROR bullseye main" > /etc/apt/sources.list; fi \
 && apt-get update \
 && sed 's/#.*//' /tmp/packages.txt | awk 'NF {print $1}' \
  | DEBIAN_FRONTEND=noninteractive xargs apt-get install -y --no-install-recommends \
 && rm -rf /var/lib/apt/lists/*

FROM gpu-base AS gpu
WORKDIR /bcnn
COPY . /bcnn
RUN useradd --create-home --uid 1000 bcnn && mkdir -p runs data && chmod -R a+rwX runs data analysis
ENV MPLCONFIGDIR=/tmp/matplotlib BCNN_DOWNLOADS=/bcnn/data/downloads GLOG_logtostderr=1
VOLUME ["/bcnn/runs", "/bcnn/data"]
USER bcnn
CMD ["tools/run_all.sh"]

FROM cpu-base AS cpu
WORKDIR /bcnn
COPY . /bcnn
RUN useradd --create-home --uid 1000 bcnn && mkdir -p runs data && chmod -R a+rwX runs data analysis
ENV MPLCONFIGDIR=/tmp/matplotlib BCNN_DOWNLOADS=/bcnn/data/downloads GLOG_logtostderr=1
VOLUME ["/bcnn/runs", "/bcnn/data"]
USER bcnn
RUN python tools/check_caffe.py --blas openblas
CMD ["tools/run_all.sh"]
