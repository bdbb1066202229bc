# Two images of the same project, and the packages that make the difference:
#   docker build --target cpu -t bcnn .              Debian 11's own Caffe (the default)
#   docker build --target gpu -t bcnn:gpu .          the same, compiled here with the same release's CUDA 11.2
#   docker build --target gpu-debs --output debs .   that Caffe alone, for `tools/setup.sh --debs debs`
#   docker run --rm -v "$PWD/runs:/bcnn/runs" -v "$PWD/data:/bcnn/data" bcnn tools/run_all.sh
#   docker run --rm --gpus all ... bcnn:gpu tools/run_all.sh --profile paper
# Add --user "$(id -u):$(id -g)" where the mounted folders are not of user 1000. Build arguments:
#   MIRROR               base URI of a Debian mirror, for the day when the image's own sources no longer carry its release
#   CUDA_ARCHITECTURES   compute capabilities to compile for (8.6 is 86; less is faster to build)
#   CUDA_PTX             capability whose code newer GPUs translate for themselves
#   JOBS                 compilers at once (default: one a core)

FROM debian:bullseye-slim AS cpu-base
ARG MIRROR=
COPY tools/packages.txt /tmp/packages.txt
RUN if [ -n "$MIRROR" ]; then echo "deb $MIRROR bullseye main" > /etc/apt/sources.list; fi \
 && apt-get update \
 && sed 's/#.*//' /tmp/packages.txt | awk 'NF {print $1}' \
  | DEBIAN_FRONTEND=noninteractive xargs apt-get install -y --no-install-recommends \
 && rm -rf /var/lib/apt/lists/*
# All that a change of the code leaves as it is comes before the code.
RUN useradd --create-home --uid 1000 bcnn && mkdir -p /bcnn/runs /bcnn/data \
 && echo /bcnn > /usr/lib/python3/dist-packages/bcnn.pth
ENV MPLCONFIGDIR=/tmp/matplotlib BCNN_DOWNLOADS=/bcnn/data/downloads GLOG_logtostderr=1
WORKDIR /bcnn

FROM cpu-base AS cpu
COPY . /bcnn
RUN chmod -R a+rwX runs data analysis
VOLUME ["/bcnn/runs", "/bcnn/data"]
USER bcnn
RUN python tools/check_caffe.py --blas openblas && cd / && python -c 'import bcnn'
CMD ["tools/run_all.sh"]

# Debian's source package of the same Caffe, with CUDA. Only the packages leave this stage.
FROM debian:bullseye-slim AS gpu-build
ARG MIRROR=
RUN free=$(($(df -Pk / | awk 'NR == 2 {print $4}') / 1024)) \
 && if [ "$free" -lt 9000 ]; then echo "no room: CUDA's compiler and the build need 9000 MB, $free MB are free" >&2; exit 1; fi \
 && if [ -n "$MIRROR" ]; then echo "deb $MIRROR bullseye main" > /etc/apt/sources.list; fi \
 && sed -i 's/ main.*/ main contrib non-free/' /etc/apt/sources.list \
 && sed -n 's/^deb /deb-src /p' /etc/apt/sources.list > /etc/apt/sources.list.d/sources.list \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends dpkg-dev nvidia-cuda-toolkit \
 && DEBIAN_FRONTEND=noninteractive apt-get build-dep -y --arch-only --no-install-recommends caffe \
 && apt-get clean
COPY caffe-cuda.patch /build/
WORKDIR /build
# Maxwell to Ampere; Ada runs Ampere's code, newer GPUs translate the PTX.
ARG CUDA_ARCHITECTURES="50 60 61 70 75 80 86"
ARG CUDA_PTX="86"
ARG JOBS=
RUN apt-get source caffe=1.0.0+git20180821.99bd997-8 \
 && cd caffe-*/ && patch -p1 --fuzz=0 < ../caffe-cuda.patch && sed -i 's/CPU_ONLY/CUDA/' debian/control \
 && DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=${JOBS:-$(nproc)}" dpkg-buildpackage -B -uc -us -d \
 && mkdir /debs && mv ../libcaffe1_*.deb ../caffe_*.deb ../python3-caffe_*.deb /debs/ && rm -rf /build

FROM scratch AS gpu-debs
COPY --from=gpu-build /debs/ /

# The driver's own library, libcuda.so.1, is not in the image: the container runtime brings that of the machine.
FROM cpu-base AS gpu-base
COPY --from=gpu-debs / /tmp/debs/
RUN sed -i 's/ main.*/ main non-free/' /etc/apt/sources.list \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /tmp/debs/*.deb \
 && rm -rf /var/lib/apt/lists/* /tmp/debs
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility

FROM gpu-base AS gpu
COPY . /bcnn
RUN chmod -R a+rwX runs data analysis
VOLUME ["/bcnn/runs", "/bcnn/data"]
USER bcnn
RUN python tools/check_caffe.py --blas openblas && cd / && python -c 'import bcnn'
CMD ["tools/run_all.sh"]

# Without --target: the CPU's.
FROM cpu AS default
