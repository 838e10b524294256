#!/bin/sh
# Create the repository in /data at the first start, then run the command: recrawl-service serve --host 0.0.0.0
# RECRAWL_STORE and RECRAWL_ARCHIVE are the URLs of a PostgreSQL database and of an object store, if there are any;
# with RECRAWL_SHARDS the repository is a cluster.
set -eu
[ -e /data/recrawl.toml ] || recrawl init /data --store "${RECRAWL_STORE:-}" --archive "${RECRAWL_ARCHIVE:-}" \
    --shards "${RECRAWL_SHARDS:-0}" >&2  # stdout belongs to the command: status --json
exec recrawl -C /data "$@"
