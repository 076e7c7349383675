#!/usr/bin/env bash
# Makes dist/convoy-VERSION-linux-x86_64.tar.gz: programs and the shared libraries they need beyond
# glibc, libstdc++ and LibTorch. It runs from any folder of another Linux (glibc 2.35 or newer);
# docs/how-to/install.md says how LibTorch is found.
#   tools/package.sh [BUILD_FOLDER [OUTPUT_FOLDER]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/programs.sh
build=${1:-build}
output=${2:-dist}
most_bytes=$((70 * 1000 * 1000)) # the archive has 64 MB: two programs draw pictures, and each contains the Rust library

name=convoy-$version-linux-x86_64
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
folder=$stage/$name
stage_programs "$build" "$folder"

cp LICENSE README.md "$folder"
list_licences "$folder/licenses"
cp -r examples "$folder"

# Adds the checks for a machine with a GPU.
mkdir -p "$folder/checks/bin" "$folder/checks/tests/golden" "$folder/share/convoy/bench"
for test in kernels_tests parity_tests; do
  [ -e "$build/bin/$test" ] || fail "$build/bin/$test is not built: configure with -DCONVOY_BUILD_TESTS=ON"
  strip -o "$folder/checks/bin/$test" "$build/bin/$test"
done
cp -r tests/golden/train tests/golden/sampling tests/golden/optim "$folder/checks/tests/golden"
ln -s ../examples "$folder/checks/examples"
cp tools/gpu_check.sh "$folder/checks"
cp -r bench/peers "$folder/share/convoy/bench"
mkdir -p "$output"
archive=$output/$name.tar.gz
tar -C "$stage" --owner=0 --group=0 --sort=name -czf "$archive.part" "$name"
mv "$archive.part" "$archive"
bytes=$(stat -c %s "$archive")
[ "$bytes" -le "$most_bytes" ] || fail "$archive has $((bytes / 1000000)) MB; $((most_bytes / 1000000)) are allowed"
printf '%s (%d MB)\n' "$archive" $((bytes / 1000000))
