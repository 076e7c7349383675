# Sourced by package.sh and wheel.sh: the programs and the shared libraries that they need beyond
# glibc, libstdc++ and LibTorch.
newest_glibc=2.35

fail() { printf 'convoy: %s\n' "$*" >&2; exit 1; }

version=$(sed -n 's/^project(Convoy VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)

# stage_programs BUILD_FOLDER FOLDER: makes bin/ and lib/convoy/ in FOLDER, which may be moved.
stage_programs() {
  local build=$1 folder=$2 file library path wants
  cmake --install "$build" --prefix "$folder" --component programs --strip >"$folder.log" ||
    fail "the installation into $folder failed: $(tail -n 3 "$folder.log")"
  # Libraries that are left out: every Linux has them, or they come with LibTorch.
  local given='^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libutil|libgcc_s|libstdc\+\+|libtorch_cpu|libc10|libgomp|libcudart|libcupti)\.so'
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
      fail "${file##*/} needs glibc $wants; glibc $newest_glibc must be enough"
  done
}

# list_licences FOLDER: writes the licences of the packaged parts into FOLDER/*.txt: Debian's
# copyright files, and the licences of the Rust crates and of the fonts.
list_licences() {
  local folder=$1 package
  mkdir -p "$folder"
  cp LICENSE "$folder/convoy.txt"
  cp rust/text/fonts/LICENSE.txt "$folder/font-convoy-sans.txt"
  for package in libcli11-dev libfmt-dev libre2-dev libsimdjson-dev libsqlite3-dev libyaml-cpp-dev nlohmann-json3-dev \
    libgloo-dev libstdc++6; do
    [ ! -e "/usr/share/doc/$package/copyright" ] || cp -L "/usr/share/doc/$package/copyright" "$folder/$package.txt"
  done
  cp .deps/site/pyarrow-*.dist-info/licenses/LICENSE.txt "$folder/arrow.txt" 2>/dev/null ||
    printf 'Apache Arrow and Parquet, Apache-2.0: https://arrow.apache.org\n' >"$folder/arrow.txt"
  (cd rust/text && cargo metadata --format-version 1 --offline --locked --filter-platform x86_64-unknown-linux-gnu) | python3 -c '
import json, sys
for package in sorted(json.load(sys.stdin)["packages"], key=lambda package: package["name"]):
    print(package["name"], package["version"], package["license"] or "see its repository", package["repository"] or "", sep="  ")
' >"$folder/rust-crates.txt"
}
