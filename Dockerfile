# A static binary in an image that holds nothing else: `docker build -t fulgurite .`
FROM rust:1-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY . .
# On Alpine the compiler's own target is musl, so the binary is static.
RUN cargo build --release --locked --package fulgurite

FROM scratch
COPY --from=build /src/target/release/fulgurite /fulgurite
# Traces and results: `docker run --rm -v "$PWD:/data" fulgurite trace info mine.spc.gz`
WORKDIR /data
ENTRYPOINT ["/fulgurite"]
