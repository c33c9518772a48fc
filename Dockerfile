# docker build --tag crawler . && docker run --volume "$PWD:/crawl" --user "$(id -u)" crawler example.com --output pages.jsonl
FROM rust:1.95-bookworm AS build
WORKDIR /build
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/build/target \
    cargo install --locked --path crates/cli --profile dist --features jemalloc --root /usr/local \
    && mkdir /crawl

# It runs without a shell; that of this image is for deploy/kubernetes.yaml.
FROM debian:bookworm-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /usr/local/bin/crawler /usr/local/bin/
COPY --from=build --chown=1000:1000 /crawl /crawl
USER 1000:1000
WORKDIR /crawl
ENTRYPOINT ["crawler"]
