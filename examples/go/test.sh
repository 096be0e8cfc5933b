#!/usr/bin/env bash
# Tests the example with the packages of Debian 12, on the server that PGHOST, PGPORT, PGUSER and PGDATABASE name.
set -euo pipefail
cd "$(dirname "$0")"
export GO111MODULE=off GOPATH=/usr/share/gocode
go vet .
go test -count=1 -v .
