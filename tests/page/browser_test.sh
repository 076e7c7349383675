#!/usr/bin/env bash
# The page of runs in Chromium: browser_test.sh SOURCE_FOLDER PROGRAM_FOLDER [SCREENSHOT_FOLDER]
# The test is skipped if there is neither a Chromium nor a package of that name (Ubuntu has only a
# snap).
set -euo pipefail
source=$1 programs=$2 pictures=${3:-}
cd "$source"
source tests/files/packages.sh
require_programs chromium chromium
work=$(mktemp -d)
server= holder=
trap 'kill $server $holder 2>/dev/null; wait 2>/dev/null; rm -rf "$work"' EXIT

chromium_with() {
  HOME=$work timeout 90 chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage "$@"
}
if ! chromium_with --user-data-dir="$work/probe" --dump-dom about:blank >"$work/probe.html" 2>"$work/probe.log" ||
  ! grep -q '<body>' "$work/probe.html"; then
  tail -n 5 "$work/probe.log"
  skip "Chromium does not run on this system"
fi

python3 tests/page/make_runs.py "$work/runs" 500 >"$work/ready" &
holder=$!
until grep -qs ready "$work/ready"; do
  kill -0 "$holder"
  sleep 0.1
done

# A sweep whose seed 2 fails, with a figure.
(cd "$work/runs" && "$programs/convoy" sweep run --results-dir sweeps --grid rate=0.1,0.01 --num-seeds 3 --result loss -q -- \
  sh -c 'echo "{{\"loss\": {rate}}}"; test {seed} -lt 2 || {{ echo out of luck >&2; exit 3; }}' >/dev/null 2>"$work/sweep.log") || [ $? -eq 15 ]
"$programs/convoy" sweep plot --results-dir "$work/runs/sweeps" --output "$work/runs/sweeps/rates.svg" -q
"$programs/convoy" sweep export --results-dir "$work/runs/sweeps" --output "$work/runs/sweeps/rates.csv" -q

start_server() {
  : >"$work/url"  # forgets the address of an earlier server
  "$programs/convoy" runs serve --dir "$work/runs" --port 0 >"$work/url" 2>"$work/server.log" &
  server=$!
  for _ in $(seq 100); do [ -s "$work/url" ] && return; sleep 0.1; done
  cat "$work/server.log" >&2
  return 1
}
start_server
url=$(cat "$work/url")

# browser NAME WINDOW FLAGS...: writes the document, after its program has run, into $work/NAME.html
browser() {
  local name=$1 window=$2
  shift 2
  # With a virtual clock the browser skips the waits between polls.
  chromium_with --user-data-dir="$work/profile-$name" --window-size="$window" --virtual-time-budget=6000 --enable-logging=stderr \
    "$@" --dump-dom "$url" >"$work/$name.html" 2>"$work/$name.log"
  if [ -n "$pictures" ]; then
    mkdir -p "$pictures"
    chromium_with --user-data-dir="$work/picture-$name" --window-size="$window" --virtual-time-budget=6000 \
      "$@" --screenshot="$pictures/$name.png" "$url" >/dev/null 2>&1
  fi
  if grep -E 'CONSOLE.*(Uncaught|Error|Refused to)' "$work/$name.log"; then
    echo "FAILED: the page's program has errors in $name"
    exit 1
  fi
}
expect() { # NAME PATTERN WHAT
  grep -qE "$2" "$work/$1.html" || { echo "FAILED: $1 does not show $3 ($2)"; tail -c 3000 "$work/$1.html"; exit 1; }
}

# These tests use the real clock and wait for the server, so that it has read all runs afterwards,
# even on a busy machine.
timeout 200 python3 tests/page/looks.py "$url" ${pictures:+"$pictures"}
timeout 120 python3 tests/page/keyboard.py "$url" ${pictures:+"$pictures"}

browser wide 1400,1000
expect wide 'data-ready="true"' 'the runs'
expect wide '505 runs, 1 sweep' 'the number of runs'
expect wide 'data-run="long"' 'the run of a million steps'
expect wide 'class="state failed"' 'a failed run'
expect wide 'class="state finished"' 'a finished run'
expect wide 'class="state running"' 'a running run'

url="$(cat "$work/url")#running"
browser hosts 1400,1000
expect hosts '<figure data-chart="loss">.*<path class="curve"' 'the loss curve'
expect hosts 'devices: busy, %' 'the GPUs of the run'
expect hosts 'host: CPUs busy' 'the host of the run'
expect hosts 'Devices of node1' 'the other host'
expect hosts 'node1:gpu0' "the other host's GPU"
expect hosts '1 answers, 1 with the same text as the reference' 'the sample'

url="$(cat "$work/url")#$("$programs/convoy" sweep show --results-dir "$work/runs/sweeps" --list --json |
  python3 -c 'import json, sys; print("sweeps%2F" + json.load(sys.stdin)[0]["name"])')"
browser sweep 1400,1000
expect sweep '6 cells: 4 values, 2 failed' 'what the sweep came to'
expect sweep 'out of luck' 'why cells failed'
expect sweep 'data-figure="rates.svg"' 'the figure that was written'
expect sweep '<option value="rates.csv">' 'the table that was written'

url="$(cat "$work/url")#long&old-007"
browser compared 1400,1000
expect compared 'Settings that differ' 'the comparison'
expect compared '<td>train.learning_rate</td>' 'the setting that differs'

url="$(cat "$work/url")#failed"
browser phone 390,844
expect phone 'class="failure">the device has no memory left' 'why the run failed'
expect phone '<h2>Log</h2>' 'the log'
expect phone 'traceback line' 'the log text'
expect phone '<h2>Stamp</h2>' 'the stamp'
browser dark 390,844 --blink-settings=preferredColorScheme=0
expect dark 'data-ready="true"' 'the runs'

# Measures the cost of the page with all these runs, with a server that has not read them yet.
kill "$server"
wait "$server" || true
start_server
token=$(sed 's/.*token=//' "$work/url")
python3 - "$(sed 's/?.*//' "$work/url")" "$token" <<'PYTHON'
import json, sys, time, urllib.request
base, token = sys.argv[1:]
cookie = {"Cookie": "convoy_token_" + base.rstrip("/").rsplit(":", 1)[1] + "=" + token}
def load(path, what):
    began = time.time()
    body = urllib.request.urlopen(urllib.request.Request(base + path, headers=cookie)).read()
    print(f"{what}: {len(body) / 1024:.0f} KiB in {1000 * (time.time() - began):.0f} ms")
    assert len(body) < 2 << 20
    return body
began = time.time()
runs = json.loads(load("api/runs", "the list for the first time"))["runs"]
while any(run["state"] == "reading" for run in runs):
    runs = json.loads(urllib.request.urlopen(urllib.request.Request(base + "api/runs", headers=cookie)).read())["runs"]
print(f"all runs read after {time.time() - began:.1f} s")
load("api/runs", "the list again")
time.sleep(1.1)
load("api/runs", "the list, all folders looked at again")
load("api/curves?run=long", "curves of the long run")
PYTHON
awk '/VmHWM/ { print "memory of the server at most " int($2 / 1024) " MiB"; if ($2 > 200 * 1024) exit 1 }' "/proc/$server/status"
echo ok
