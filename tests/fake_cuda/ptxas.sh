#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ptxas.sh FOLDER "GENERATION..." PTX...: NVIDIA's assembler accepts the kernels for these
# generations of GPUs, and keeps all of their numbers in registers. Fetches the assembler, a wheel,
# into FOLDER; ends with 77 if it cannot be fetched.
set -eu
folder=$1
generations=$2
shift 2
wheel=nvidia-cuda-nvcc-cu12==12.9.86

if [ $# -eq 0 ]; then
  echo "skipped: built without clang++, there are no kernels"
  exit 77
fi
assembler=$folder/nvidia/cuda_nvcc/bin/ptxas
if [ ! -x "$assembler" ]; then
  mkdir -p "$folder"
  if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
      --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 --dest "$folder" "$wheel" \
      >"$folder/pip.log" 2>&1; then
    echo "skipped: $wheel could not be fetched: $(tail -n 1 "$folder/pip.log")"
    exit 77
  fi
  unzip -q -o "$folder"/nvidia_cuda_nvcc_cu12-*.whl 'nvidia/cuda_nvcc/bin/ptxas' -d "$folder"
  rm -f "$folder"/nvidia_cuda_nvcc_cu12-*.whl
  chmod +x "$assembler"
fi

# The most registers of a thread. With more registers fewer than 1,024 threads run on a
# multiprocessor at once. Decoding keeps a query, sums and pieces of several keys for up to eight
# heads in registers: its loads in flight hide the latency, not its number of threads.
most_registers() {
  case $1 in
  paged_attention_cuda) echo 255 ;;
  coded_product_sm80_cuda) echo 160 ;; # sums of 32 outputs and 32 rows, and the codes that come next
  paged_decode_sm80_cuda) echo 128 ;; # sums, a query and 16 keys with their values
  adamw_narrow_cuda) echo 80 ;; # eight elements of a thread, with both moments
  factor_kernels) echo 96 ;; # a matrix, four or eight hidden units: independent blocks of slots hide the latency
  descent_kernels) echo 96 ;; # chains of doubles: there are fewer blocks than fit
  sampler_cuda) echo 128 ;; # a block takes a row: there are fewer rows than multiprocessors hold blocks
  *) echo 64 ;;
  esac
}

for ptx; do
  text=$(basename "$ptx" .ptx)
  for generation in $generations; do
    log=$folder/$text.sm_$generation.log
    case $text.$generation in *_sm80_*.75) continue ;; esac
    if ! "$assembler" -arch=sm_$generation -v "$ptx" -o "$folder/$text.sm_$generation.cubin" >"$log" 2>&1; then
      cat "$log"
      exit 1
    fi
    if grep -q '[1-9][0-9]* bytes spill' "$log"; then
      echo "$text sm_$generation: registers are spilt to memory"
      grep -B 2 '[1-9][0-9]* bytes spill' "$log"
      exit 1
    fi
    # In the kernels of sweeps only the test of four powers counts, in other files every kernel.
    counted=.
    [ "$text" != guess_kernels ] || counted="entry function 'ssm_test_exact_15'"
    most=$(grep -A 4 "$counted" "$log" | sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' | sort -n | tail -n 1)
    echo "$text sm_$generation: at most $most registers"
    [ "$most" -le "$(most_registers "$text")" ]
  done
done
