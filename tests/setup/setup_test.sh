#!/usr/bin/env bash
# Tests which half of LibTorch ./run fetches. pip is replaced by a program that makes tiny wheels
# and lists the requested ones.
#   setup_test.sh SOURCE_FOLDER
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
unset CONVOY_CUDA CONVOY_TORCH VIRTUAL_ENV

mkdir -p "$work/bin" "$work/driver"
cat >"$work/bin/python3" <<'PYTHON'
#!/usr/bin/env bash
real=$(PATH=${PATH#*:} command -v python3)
[ "$1 $2 $3" = "-m pip download" ] || exec "$real" "$@"
requirement=${*: -1}
echo "$requirement" >>"$PIP_ASKED"
while [ "$1" != --dest ]; do shift; done
name=${requirement%%==*}
"$real" - "$2/${name//-/_}-1-py3-none-any.whl" "$name" <<'WHEEL'
import sys, zipfile
files = {"torch": ["torch/include/a.h", "torch/version.py", "torch/lib/libtorch_cpu.so", "torch/lib/libc10.so",
                   "torch/lib/libgomp.so.1", "torch/lib/libtorch_cuda.so"]}.get(sys.argv[2], ["nvidia/cu13/lib/%s.so" % sys.argv[2]])
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for name in files:
        wheel.writestr(name, "")
WHEEL
PYTHON
chmod +x "$work/bin/python3"
echo '' | cc -shared -o "$work/driver/libcuda.so.1" -xc -

# set_up NAME [VARIABLE=VALUE...]: sets up LibTorch in folder NAME. The requested wheels are listed
# in NAME/asked, the messages in NAME/said.
set_up() {
  local folder=$work/$1
  shift
  mkdir -p "$folder/.deps"
  : >"$folder/asked"
  (
    cd "$folder"
    # shellcheck source=/dev/null
    source "$source/tools/setup.sh"
    export PATH=$work/bin:$PATH PIP_ASKED=$folder/asked
    [ $# -eq 0 ] || export "$@"
    setup_libtorch
  ) 2>"$folder/said"
}
asked() { grep -c "$2" "$work/$1/asked" || true; }
has_cuda_half() { [ -e "$work/$1/.deps/site/torch/lib/libtorch_cuda.so" ]; }

if [ ! -e /proc/driver/nvidia ]; then
  set_up cpu
  [ "$(asked cpu cublas)" -eq 0 ] || fail "a host without a driver fetches CUDA"
  has_cuda_half cpu && fail "a host without a driver keeps libtorch_cuda.so"
fi

set_up off CONVOY_CUDA=0 LD_LIBRARY_PATH="$work/driver"
[ "$(asked off cublas)" -eq 0 ] || fail "CONVOY_CUDA=0 fetches CUDA"

# If the CPU half is there already, the CUDA half replaces it.
set_up gpu CONVOY_CUDA=0
set_up gpu LD_LIBRARY_PATH="$work/driver"
has_cuda_half gpu || fail "a host with a driver has no libtorch_cuda.so: $(cat "$work/gpu/said")"
for wheel in nvidia-cublas nvidia-cudnn-cu13 nvidia-nccl-cu13; do
  [ "$(asked gpu "^$wheel==")" -eq 1 ] || fail "$wheel was not fetched once"
done
grep -q 'MB to fetch, [0-9]* GiB on disk' "$work/gpu/said" || fail "sizes are not said: $(cat "$work/gpu/said")"
grep -q 'download 2 of 14, 423 MB' "$work/gpu/said" || fail "no progress: $(cat "$work/gpu/said")"
set_up gpu LD_LIBRARY_PATH="$work/driver"
[ ! -s "$work/gpu/asked" ] || fail "fetched twice: $(cat "$work/gpu/asked")"

# An installed torch with its CUDA half is used where it is.
mkdir -p "$work/python/torch/lib"
echo "__version__ = '2.11.0+cu130'" >"$work/python/torch/version.py"
: >"$work/python/torch/__init__.py"
: >"$work/python/torch/lib/libtorch_cuda.so"
set_up installed LD_LIBRARY_PATH="$work/driver" PYTHONPATH="$work/python"
[ "$(asked installed cublas)" -eq 0 ] || fail "CUDA is fetched though an installed torch has it"
grep -q "using the CUDA half of LibTorch in $work/python/torch" "$work/installed/said" || fail "$(cat "$work/installed/said")"

set_up wrong CONVOY_CUDA=yes && fail "CONVOY_CUDA=yes is taken"
grep -q "set it to 1" "$work/wrong/said" || fail "$(cat "$work/wrong/said")"
echo "all well"
