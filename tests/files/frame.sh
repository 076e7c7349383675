# The frame of a test script that starts other programs, as far as scripts share it: a folder
# `work`, and however the script ends, what it started is ended and the folder is gone. To be
# sourced when nothing can skip the test any more; the script then says how, by defining
#   end_started   ends what it started
#   show_logs     after fail(), when all that has ended

end_started() { :; }
show_logs() { :; }

work=$(mktemp -d)
frame_failed=
frame_end() {
  local code=$?
  trap - EXIT
  end_started
  [ -z "$frame_failed" ] || show_logs >&2
  rm -rf "$work"
  exit "$code"
}
trap frame_end EXIT
trap 'exit 130' INT TERM HUP

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  frame_failed=yes
  exit 1
}
say() { printf '%s %s\n' "$(date +%T)" "$*"; }

wait_until() {  # SECONDS COMMAND...
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$end" ] || return 1
    sleep 0.1
  done
}
