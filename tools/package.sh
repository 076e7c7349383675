#!/usr/bin/env bash
# Makes dist/convoy-VERSION-linux-x86_64.tar.gz: programs and the shared libraries they need beyond glibc, libstdc++ and
# LibTorch. It runs from any folder of another Linux (glibc 2.35 or newer); LibTorch is found there as README says.
#   tools/package.sh [BUILD_FOLDER [OUTPUT_FOLDER]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build}
output=${2:-dist}
newest_glibc=2.35
most_bytes=$((60 * 1000 * 1000))

fail() { printf 'convoy: %s\n' "$*" >&2; exit 1; }

version=$(sed -n 's/^project(Convoy VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=convoy-$version-linux-x86_64
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
folder=$stage/$name
cmake --install "$build" --prefix "$folder" --component programs --strip >"$stage/install.log" ||
  fail "the installation into $folder failed: $(tail -n 3 "$stage/install.log")"

# Libraries that every Linux has, or that come with LibTorch.
given='^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libutil|libgcc_s|libstdc\+\+|libtorch_cpu|libc10|libgomp|libcudart|libcupti)\.so'
for file in "$build"/bin/convoy "$build"/bin/convoy-worker "$folder"/lib/convoy/*; do
  ldd "$file" | awk '$2 == "=>" { print $1, $3 }' | while read -r library path; do
    [[ $library =~ $given ]] || [ -e "$folder/lib/convoy/$library" ] && continue
    [ -e "$path" ] || fail "$file needs $library, which is not on this machine"
    cp -L "$path" "$folder/lib/convoy/$library"
  done
done

for file in "$folder"/bin/* "$folder"/lib/convoy/*; do
  wants=$(objdump -T "$file" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -n 1)
  [ "$(printf '%s\n' "$wants" "$newest_glibc" | sort -V | tail -n 1)" = "$newest_glibc" ] ||
    fail "${file##*/} needs glibc $wants; the archive promises $newest_glibc"
done

cp LICENSE README.md "$folder"
cp -r examples "$folder"

# What a machine with a GPU is checked with.
mkdir -p "$folder/checks/bin" "$folder/checks/tests/golden" "$folder/share/convoy/bench"
for test in kernels_tests parity_tests; do
  [ -e "$build/bin/$test" ] || fail "$build/bin/$test is not built: configure with -DCONVOY_BUILD_TESTS=ON"
  strip -o "$folder/checks/bin/$test" "$build/bin/$test"
done
cp -r tests/golden/train tests/golden/sampling tests/golden/optim "$folder/checks/tests/golden"
cp -r examples "$folder/checks"
cp tools/gpu_check.sh "$folder/checks"
cp -r bench/peers "$folder/share/convoy/bench"
mkdir -p "$output"
archive=$output/$name.tar.gz
tar -C "$stage" --owner=0 --group=0 --sort=name -czf "$archive.part" "$name"
mv "$archive.part" "$archive"
bytes=$(stat -c %s "$archive")
[ "$bytes" -le "$most_bytes" ] || fail "$archive has $((bytes / 1000000)) MB; $((most_bytes / 1000000)) are allowed"
printf '%s (%d MB)\n' "$archive" $((bytes / 1000000))
