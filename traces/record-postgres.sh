#!/usr/bin/env bash
# Records the page trace of PostgreSQL under pgbench: every 8 KiB page of a relation
# file that the server reads or writes, as the kernel sees it (strace).
#
# usage: record-postgres.sh [OUTPUT.pages.zst]
#
# For Debian and its kin. As root it installs what is missing and runs the server as
# the user postgres; otherwise it runs all as the caller, who must have the tools.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m "${1:-$here/postgres-pgbench.pages.zst}")

scale=10
seed=42
transactions=40000
mix=(-b tpcb-like@1 -b select-only@1)

# --- tools ---------------------------------------------------------------------
# The server's own programs are not on the PATH in Debian; take the newest version.
find_bin() { printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1; }

missing=()
[[ -x $(find_bin)/initdb && -x $(find_bin)/pgbench ]] || missing+=(postgresql postgresql-contrib)
for tool in strace zstd python3; do
    command -v "$tool" >/dev/null || missing+=("$tool")
done
if ((${#missing[@]})); then
    if ((EUID != 0)); then
        echo "missing: ${missing[*]} (run as root to install them)" >&2
        exit 1
    fi
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
fi
bin=$(find_bin)

# --- a private cluster ---------------------------------------------------------
work=$(mktemp -d "${TMPDIR:-/tmp}/pages.XXXXXX")
data=$work/data
tracer=

# initdb and the server refuse to run as root; the cd is for a caller's directory that
# the user postgres may not enter.
if ((EUID == 0)); then
    chown postgres "$work"
    as() { (cd "$work" && exec runuser -u postgres -- "$@"); }
else
    as() { (cd "$work" && exec "$@"); }
fi

cleanup() {
    if [[ -f $data/postmaster.pid ]]; then
        as "$bin/pg_ctl" -D "$data" -m immediate stop >/dev/null 2>&1 || true
    fi
    # strace ends with the server; the kill is for a server too young to have a pid file.
    if [[ -n $tracer ]]; then
        kill "$tracer" 2>/dev/null || true
        wait "$tracer" || true
    fi
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# The directory is private (mode 700), and peer lets in only the user who owns it.
# UTF8 and C: the same catalogues whatever the locale of the machine.
as "$bin/initdb" -D "$data" -E UTF8 --locale=C --auth-local=peer --auth-host=reject \
    --no-sync >"$work/initdb.log"

# Why these settings:
#   shared_buffers      the smallest there is, 16 pages: hits in them are lost to the trace
#   listen_addresses    no TCP, only the socket in the private directory
#   fsync               off: syncs move no pages, and the cluster is thrown away
#   autovacuum, bgwriter_lru_maxpages, checkpoint_timeout, max_wal_size,
#   max_logical_replication_workers
#                       no process that works by the clock touches pages, so the
#                       order of requests does not depend on the machine's speed, and
#                       a second recording gives the same trace
as tee -a "$data/postgresql.conf" >/dev/null <<EOF
shared_buffers = 128kB
max_connections = 10
listen_addresses = ''
unix_socket_directories = '$work'
fsync = off
autovacuum = off
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1d
max_wal_size = 16GB
max_logical_replication_workers = 0
EOF

# --- load, not recorded --------------------------------------------------------
as "$bin/pg_ctl" -D "$data" -l "$work/server.log" -w start >/dev/null
as "$bin/createdb" -h "$work" bench
as "$bin/pgbench" -h "$work" -i -s "$scale" -q bench 2>"$work/load.log"
# Names for the header; asked here, for a query later would be in the trace.
names=$(as "$bin/psql" -h "$work" -AtF ' ' -d bench -c \
    "select '# name ' || pg_relation_filepath(oid), relname from pg_class
     where relname like 'pgbench%' order by 1")
# The stop writes out all dirty pages: the recording starts from a clean, cold cache.
as "$bin/pg_ctl" -D "$data" -m fast -w stop >/dev/null

# --- run, recorded -------------------------------------------------------------
# -f     follows the postmaster's children, which do the reading and writing
# -y     prints the path behind each descriptor; -s 0 leaves out the contents
# -e ... the calls with an offset are those of relation files; the plain ones are
#        caught too, so that the converter can show that no page went through them
# --seccomp-bpf  stops the server at these calls only
as strace -f -y -s 0 --seccomp-bpf -e signal=none \
    -e trace=pread64,pwrite64,preadv,pwritev,preadv2,pwritev2,read,write,readv,writev \
    -o "$work/strace.log" "$bin/postgres" -D "$data" >>"$work/server.log" 2>&1 &
tracer=$!
# Watch the file, for a connection (pg_isready) would be in the trace.
for ((i = 0; ; i++)); do
    if grep -qs '^ready' "$data/postmaster.pid"; then break; fi
    if ((i == 300)) || ! kill -0 "$tracer" 2>/dev/null; then
        cat "$work/server.log" >&2
        exit 1
    fi
    sleep 0.1
done
# -n: no vacuum first, for the load has just done that.
run=(pgbench -n -c 1 -t "$transactions" "--random-seed=$seed" "${mix[@]}")
as "$bin/${run[0]}" -h "$work" "${run[@]:1}" bench >&2
# A fast stop writes out what is still dirty; that is in the trace, as it should be.
as "$bin/pg_ctl" -D "$data" -m fast -w stop >/dev/null
wait "$tracer"
tracer=

# --- convert and pack ----------------------------------------------------------
{
    echo "# Pages that PostgreSQL reads and writes under pgbench; recorded by record-postgres.sh"
    echo "# server: $("$bin/postgres" --version), shared_buffers = 128kB"
    echo "# load: pgbench -i -s $scale (not in the trace)"
    echo "# run: ${run[*]}"
    echo "# page size: 8192 bytes; R page = read, W page = write"
    echo "# below: name PATH RELATION; file FIRST COUNT PATH, where the pages FIRST to"
    echo "# FIRST+COUNT-1 are the blocks of this file from 0 on; then the requests"
    echo "$names"
    python3 "$here/strace2pages.py" "$work/strace.log"
} >"$work/trace"
zstd -q -19 -f "$work/trace" -o "$work/trace.zst"
cp "$work/trace.zst" "$out"
echo "$out: $(stat -c %s "$out") bytes" >&2
