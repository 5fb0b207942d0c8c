#!/bin/sh
# PostgreSQL under power cuts. The promise: a transaction whose number was printed is durable, the tables agree, and what
# is there is a prefix.
#
#     fulgurite crashtest --setup "$PWD/postgresql.sh setup" --check "$PWD/postgresql.sh check" -- \
#         "$PWD/postgresql.sh" write [SETTING=VALUE…]
#
# `write fsync=off` is a fault. `write full_page_writes=off` is one unless pages are stored as a whole, as with
# `--folder journaled:tear=8KiB`: recovery meets pages that a cut tore, and their checksums tell. As root, the server runs as the user postgres. Its socket has an abstract name, so it
# is no file; its segment of shared memory outlives a kill, so `check` removes it if its number is left.
set -eu

bin=$(pg_config --bindir)
socket=@fulgurite-$FULGURITE_CRASHTEST
transactions=30
run=
[ "$(id -u)" != 0 ] || run='setpriv --reuid=postgres --regid=postgres --clear-groups'

query() { psql -h "$socket" -U test -d postgres -v ON_ERROR_STOP=1 -XAtq "$@"; }

# Prints the number of the server's segment of shared memory.
segment() { awk 'NR == 7 { print $2 }' data/postmaster.pid 2>/dev/null; }

# Starts the server with settings, and waits until it takes queries, as it does after recovery.
start() {
    options=
    for setting in "$@"; do options="$options -c $setting"; done
    # shellcheck disable=SC2086
    $run "$bin/postgres" -D "$FULGURITE_FOLDER/data" -k "$socket" $options >&2 </dev/null &
    server=$!
    until query -c 'SELECT 1' >/dev/null 2>&1; do
        kill -0 "$server"
        sleep 0.02
    done
}

case "${1:-}" in
setup)
    mkdir data
    # Small segments of the log are made, and reused, often.
    $run "$bin/initdb" -D data -U test -A trust --no-sync --no-instructions --data-checksums --wal-segsize=1 >/dev/null
    cat >>data/postgresql.conf <<'END'
listen_addresses = ''
shared_buffers = 1MB
max_connections = 5
dynamic_shared_memory_type = mmap
wal_level = minimal
max_wal_senders = 0
autovacuum = off
min_wal_size = 2MB
max_wal_size = 2MB
END
    start
    query -c 'CREATE TABLE orders(number int PRIMARY KEY, content text); CREATE TABLE lengths(number int, length int)'
    # Each transaction changes all of these pages in their place.
    query -c "CREATE TABLE stock(number int PRIMARY KEY, sold int, filler text) WITH (fillfactor = 50);
        INSERT INTO stock SELECT number, 0, repeat('x', 150) FROM generate_series(1, 400) AS number"
    kill -INT "$server" && wait "$server"
    ;;
write)
    shift
    start "$@"
    echo "segment $(segment)"
    for number in $(seq "$transactions"); do
        echo "BEGIN; INSERT INTO orders VALUES($number, repeat('order $number ', 40));"
        echo "INSERT INTO lengths SELECT number, length(content) FROM orders WHERE number = $number;"
        echo "UPDATE stock SET sold = sold + 1 WHERE (number - $number) % 20 = 0; COMMIT;"
        [ $((number % 10)) != 0 ] || echo 'CHECKPOINT;'
        echo "SELECT $number;"
    done | query -f -
    ;;
check)
    printed=0
    while read -r first rest; do
        case $first in
            segment) ipcrm -m "$rest" 2>/dev/null || true ;;
            *) printed=$first ;;
        esac
    done
    ipcrm -m "$(segment)" 2>/dev/null || true
    # After a real cut the number of the process would be that of another program, or of none.
    rm -f data/postmaster.pid
    start
    found=$(query -c "SELECT count(*), coalesce(max(number), 0),
        count(*) FILTER (WHERE content = repeat('order ' || number || ' ', 40)) FROM orders")
    differing=$(query -c 'SELECT count(*) FROM orders FULL JOIN lengths USING (number)
        WHERE length IS DISTINCT FROM length(content)')
    last=$(query -c 'SELECT count(*) FROM orders')
    unsold=$(query -c "SELECT count(*) FROM stock WHERE sold <> ($last + 19 - (number - 1) % 20) / 20")
    kill -INT "$server" && wait "$server"
    echo "$printed printed; orders: $found (rows|last|right), $differing of lengths and $unsold of stock differ"
    [ "$found" = "$last|$last|$last" ] && [ "$last" -ge "$printed" ] && [ "$differing$unsold" = 00 ]
    ;;
*)
    echo "accepted: setup, write or check" >&2
    exit 2
    ;;
esac
