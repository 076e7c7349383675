# What a test needs of the machine, or a skip that says why. To be sourced.

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

require_root() { [ "$(id -u)" = 0 ] || skip "this test needs root"; }

# require_programs "PACKAGES" PROGRAM...: installs the packages when a program is missing and it can.
require_programs() {
  local packages=$1 program missing=
  shift
  for program in "$@"; do command -v "$program" >/dev/null || missing+=" $program"; done
  [ -n "$missing" ] || return 0
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || skip "not installed:$missing"
  # apt refuses a second one at once, and tests run side by side.
  # shellcheck disable=SC2086
  { flock -w 300 9 && timeout 60 apt-get -qq update &&
    DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $packages 9>&-; } \
    9>/tmp/convoy-tests-apt.lock >/dev/null 2>&1 || skip "not installed:$missing, and apt-get can not install $packages here"
  for program in "$@"; do command -v "$program" >/dev/null || skip "the packages $packages lack $program"; done
}
