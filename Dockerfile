# Builds and tests baregrad on a bare Debian 12 with the same make targets as everywhere else.
FROM debian:12 AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends make python3 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /baregrad
# The set-up alone first: it is kept as a layer until a list of packages changes.
COPY Makefile requirements-dev.txt ./
COPY scripts scripts
RUN make setup
COPY . .
# Leaves the Python wheel in build/wheel; the image below holds the command and the C++ library.
RUN make test
RUN cmake --install build/release --prefix /usr/local --strip

FROM debian:12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends libstdc++6 zlib1g \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local /usr/local
RUN ldconfig && baregrad info
ENTRYPOINT ["baregrad"]
CMD ["--help"]
