# A private PostgreSQL server in a temporary folder, which listens only on a socket and ends with
# the script. To be sourced after tests/files/packages.sh; sets POSTGRES_URL and the command
# POSTGRES_RESTART.

start_private_postgres() {
  require_root  # the server refuses to run as root, and another user can be had by root only
  require_postgres
  POSTGRES_FOLDER=$(mktemp -d /tmp/convoy-postgres-XXXXXX)
  chown postgres "$POSTGRES_FOLDER"
  trap stop_private_postgres EXIT
  runuser -u postgres -- "$POSTGRES_BINARIES/initdb" -D "$POSTGRES_FOLDER/data" -A trust -N >"$POSTGRES_FOLDER/initdb.log" 2>&1 ||
    { cat "$POSTGRES_FOLDER/initdb.log"; exit 1; }
  # fsync is off, because the test kills clients and not the machine.
  cat >>"$POSTGRES_FOLDER/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$POSTGRES_FOLDER'
fsync = off
max_connections = 40
shared_buffers = 32MB
CONF
  POSTGRES_CONTROL="runuser -u postgres -- $POSTGRES_BINARIES/pg_ctl -D $POSTGRES_FOLDER/data -w -t 60 -m fast -l $POSTGRES_FOLDER/server.log"
  POSTGRES_RESTART="cd / && $POSTGRES_CONTROL restart"
  (cd / && $POSTGRES_CONTROL start >/dev/null) || { cat "$POSTGRES_FOLDER/server.log"; exit 1; }
  # The server does not belong to this script's process tree, so this watcher stops it when the
  # script is killed.
  setsid bash -c "while kill -0 $$ 2>/dev/null; do sleep 1; done; cd / && $POSTGRES_CONTROL stop; rm -rf $POSTGRES_FOLDER" \
    >/dev/null 2>&1 </dev/null &
  POSTGRES_URL="postgresql://postgres@/postgres?host=$POSTGRES_FOLDER"
}

stop_private_postgres() {
  (cd / && $POSTGRES_CONTROL stop >/dev/null 2>&1)
  rm -rf "$POSTGRES_FOLDER"
}
