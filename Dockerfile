# The program in a container: no compiler inside, about 30 MB above its base; computes with no GPU, and on NVIDIA's with the
# driver that the machine brings (580 or newer; docker run --gpus all). From a clone:
#   docker build -t cingulum .
# Behind a proxy with a certificate of its own: --secret id=certificates,src=/etc/ssl/certs/ca-certificates.crt.
# Where a folder `installed` lies beside this file (tools/container puts it there) the program in it is taken instead of
# being built. BASE is Debian 12 by any name.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
COPY . /source
WORKDIR /source
RUN --mount=type=secret,id=certificates \
    if [ -s /run/secrets/certificates ]; then \
      export SSL_CERT_FILE=/run/secrets/certificates PIP_CERT=/run/secrets/certificates NODE_EXTRA_CA_CERTS=/run/secrets/certificates; \
    fi && \
    if [ ! -x installed/bin/cingulum ]; then \
      apt-get update && apt-get install -y --no-install-recommends make git ca-certificates python3 && \
      make && make install PREFIX=/source/installed; \
    fi && \
    mkdir -p /opt/cingulum/bin /opt/cingulum/lib && \
    cp -a installed/bin/cingulum /opt/cingulum/bin/ && \
    find installed/lib* \( -name 'libcingulum.so*' -o -name 'libwgpu_native.so*' \) -exec cp -a {} /opt/cingulum/lib/ \; && \
    cp LICENSE /opt/cingulum/

FROM ${BASE}
# Libraries that the program is linked with; the loader of Vulkan, for WebGPU; ps, which Nextflow asks for tasks' figures.
RUN apt-get update && \
    apt-get install -y --no-install-recommends libfmt9 libisal2 libxxhash0 zlib1g libzstd1 libblosc1 liblz4-1 libbz2-1.0 \
      libstdc++6 libvulkan1 procps && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/log/apt /var/log/dpkg.log
COPY --from=build /opt/cingulum /opt/cingulum
ENV PATH=/opt/cingulum/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics
LABEL org.opencontainers.image.title="cingulum" org.opencontainers.image.licenses="Apache-2.0"
CMD ["cingulum", "help"]
