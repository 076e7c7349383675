# Functions for the programs and packages that a test needs: they install them, or skip the test
# with the reason. To be sourced.

skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

require_root() { [ "$(id -u)" = 0 ] || skip "this test needs root"; }

install_packages() {  # "PACKAGES" "PROGRAMS THAT ARE MISSING"
  local packages=$1 missing=$2 log
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || skip "not installed: $missing"
  log=$(mktemp)
  # Tests run side by side, and apt refuses to run twice at once. Descriptor 9 is closed for apt, so
  # that a service that a package starts does not keep the lock.
  # shellcheck disable=SC2086
  { flock -w 300 9 && timeout 150 apt-get -qq update 9>&- &&
    DEBIAN_FRONTEND=noninteractive timeout 300 apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $packages 9>&-; } \
    9>/tmp/convoy-tests-apt.lock >"$log" 2>&1 </dev/null || {
    echo "(code $?; 124 is a timeout)" >>"$log"
    skip "not installed: $missing, and apt-get cannot install $packages here: $(tail -n 2 "$log" | tr '\n' ' ')$(rm -f "$log")"
  }
  rm -f "$log"
}

# require_programs "PACKAGES" PROGRAM...: installs the packages if a program is missing, or skips
# the test if they cannot be installed.
require_programs() {
  local packages=$1 program missing=()
  shift
  for program in "$@"; do command -v "$program" >/dev/null || missing+=("$program"); done
  [ ${#missing[@]} -gt 0 ] || return 0
  install_packages "$packages" "${missing[*]}"
  for program in "$@"; do command -v "$program" >/dev/null || skip "the packages $packages lack $program"; done
}

# Prints the folder of the newest PostgreSQL server's programs, which Debian keeps out of PATH; 1 =
# there is none.
find_postgres() {
  ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1 | grep . || { command -v initdb >/dev/null && dirname "$(command -v initdb)"; }
}

# Installs a PostgreSQL server if there is none, or skips the test if it cannot be installed. Sets
# POSTGRES_BINARIES.
require_postgres() {
  find_postgres >/dev/null || install_packages postgresql "the server of PostgreSQL"
  POSTGRES_BINARIES=$(find_postgres) || skip "the package postgresql lacks initdb"
  [ "$(id -u)" != 0 ] || id postgres >/dev/null 2>&1 || skip "there is no user postgres"
}

# python_environment FOLDER PACKAGE==VERSION...: a virtual environment with these packages, made
# once. Debian's python3 has no ensurepip, so the machine's pip fills it.
python_environment() {
  local folder=$1
  shift
  [ "$(cat "$folder/.packages" 2>/dev/null)" != "$*" ] || return 0
  mkdir -p "$folder"
  python3 -m venv --without-pip "$folder" >"$folder/venv.log" 2>&1 ||
    skip "python3 cannot make a virtual environment: $(tail -n 1 "$folder/venv.log")"
  timeout 300 python3 -m pip --python "$folder/bin/python" install --quiet --disable-pip-version-check "$@" \
    >"$folder/pip.log" 2>&1 || skip "pip cannot fetch $*: $(tail -n 1 "$folder/pip.log")"
  printf '%s' "$*" >"$folder/.packages"
}
