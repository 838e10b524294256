#!/bin/sh
# Create the repository in /data at the first start, then run the command: recrawl-service serve --host 0.0.0.0
set -eu
[ -e /data/recrawl.toml ] || recrawl init /data
exec recrawl -C /data "$@"
