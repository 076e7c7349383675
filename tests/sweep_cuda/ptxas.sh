#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ptxas.sh PTX FOLDER: NVIDIA's assembler takes the kernels for every generation of GPUs that sweeps run on, and keeps
# all of their numbers in registers. Fetches the assembler, a wheel, into FOLDER; ends with 77 where that is not possible.
set -eu
ptx=$1
folder=$2
wheel=nvidia-cuda-nvcc-cu12==12.9.86

if [ ! -s "$ptx" ]; then
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

for generation in 75 80 86 89 90 100 120; do
  log=$folder/sm_$generation.log
  if ! "$assembler" -arch=sm_$generation -v "$ptx" -o "$folder/sm_$generation.cubin" >"$log" 2>&1; then
    cat "$log"
    exit 1
  fi
  if grep -q '[1-9][0-9]* bytes spill' "$log"; then
    echo "sm_$generation: registers are spilt to memory"
    grep -B 2 '[1-9][0-9]* bytes spill' "$log"
    exit 1
  fi
  most=$(sed -n 's/.*Used \([0-9]*\) registers.*/\1/p' "$log" | sort -n | tail -n 1)
  tested=$(grep -A 4 "entry function 'ssm_test_exact_15'" "$log" | sed -n 's/.*Used \([0-9]*\) registers.*/\1/p')
  echo "sm_$generation: at most $most registers, $tested to test four powers"
  # With more, fewer than 1,024 threads are on a multiprocessor at once.
  [ "$tested" -le 64 ]
done
