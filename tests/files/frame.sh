# Shared parts of test scripts that start other programs: a folder `work`, and the cleaning up.
# However the script ends, the programs that it started are ended and the folder is removed. Source
# this file when nothing can skip the test any more, then define
#   end_started   ends the programs that the script started
#   show_logs     prints logs; called after fail(), when these programs have ended

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
