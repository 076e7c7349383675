#!/usr/bin/env bash
# Tests `convoy store serve`: store_serve_test.sh SOURCE_DIR CONVOY
set -u
source "$1/tests/files/packages.sh"
CONVOY=$2
require_postgres
FOLDER=$(mktemp -d /tmp/convoy-store-XXXXXX)
chmod 755 "$FOLDER"
SERVER=
finish() {
  [ -z "$SERVER" ] || kill "$SERVER" 2>/dev/null
  wait
  rm -rf "$FOLDER"
}
trap finish EXIT

fail() {
  echo "FAILED: $*"
  cat "$FOLDER"/out "$FOLDER"/err "$FOLDER"/store/data/server.log 2>/dev/null
  exit 1
}

serve() {
  "$CONVOY" store serve --data-dir "$FOLDER/store" "$@" >"$FOLDER/out" 2>"$FOLDER/err" &
  SERVER=$!
  for _ in $(seq 600); do
    URL=$(head -1 "$FOLDER/out")
    [ -z "$URL" ] || return 0
    kill -0 "$SERVER" 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
}

sweep() {
  "$CONVOY" sweep run --store "$URL" --results-dir "$FOLDER/results" --grid x=1,2,3 --result y -- echo '{{"y": {x}}}' \
    >"$FOLDER/sweep" 2>&1 || { cat "$FOLDER/sweep"; fail "a sweep over the store"; }
}

# The files that a start leaves when it is killed inside initdb.
mkdir -p "$FOLDER/store/data.new" && touch "$FOLDER/store/data.new/PG_VERSION"
serve || fail "the server does not start"
FIRST=$URL
case $URL in postgresql://convoy:*@127.0.0.1:*/postgres) ;; *) fail "not a URL: $URL" ;; esac
[ "$(stat -c %a "$FOLDER/store/url")" = 600 ] || fail "the URL can be read by others"
grep -q "${URL#*convoy:}" "$FOLDER/err" && fail "the password is in the messages"
sweep
WRONG=${URL/convoy:*@/convoy:guess@}
"$CONVOY" sweep show --results-dir "$FOLDER/results" --store "$WRONG" >"$FOLDER/sweep" 2>&1 && fail "another password opens the store"

kill -INT "$SERVER"
wait "$SERVER" || fail "Ctrl-C is no failure"
serve || fail "the server does not start again"
[ "$URL" = "$FIRST" ] || fail "another URL after a restart: $URL"
sweep
grep -q "3" "$FOLDER/sweep" || fail "no result after a restart"

# When the command is killed, its server ends too.
PID=$(head -1 "$FOLDER/store/data/postmaster.pid")
kill -9 "$SERVER"
wait "$SERVER" 2>/dev/null
for _ in $(seq 100); do kill -0 "$PID" 2>/dev/null || break; sleep 0.1; done
kill -0 "$PID" 2>/dev/null && fail "the server outlives its command"

# A port that is in use gives a clear error.
serve || fail "the server does not start after a kill"
"$CONVOY" store serve --data-dir "$FOLDER/other" --port "$(cat "$FOLDER/store/port")" >"$FOLDER/sweep" 2>&1 &&
  fail "two servers on one port"
grep -q "port" "$FOLDER/sweep" || fail "the error does not name the port"
echo passed
