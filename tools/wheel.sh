#!/usr/bin/env bash
# Makes dist/convoy-VERSION-py3-none-manylinux_2_35_x86_64.whl, with which `pip install` puts the
# programs into PATH. They run with the LibTorch of the environment in which they are installed, and
# without Python.
#   tools/wheel.sh [BUILD_FOLDER [OUTPUT_FOLDER]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/programs.sh
build=${1:-build}
output=${2:-dist}

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
stage_programs "$build" "$stage/programs"
wheel=$stage/wheel data=$stage/wheel/convoy-$version.data facts=$stage/wheel/convoy-$version.dist-info
mkdir -p "$data/data/lib" "$facts"
mv "$stage/programs/bin" "$data/scripts"
mv "$stage/programs/lib/convoy" "$data/data/lib/convoy"
list_licences "$facts/licenses"
cat >"$facts/WHEEL" <<WHEEL
Wheel-Version: 1.0
Generator: convoy
Root-Is-Purelib: false
Tag: py3-none-manylinux_${newest_glibc/./_}_x86_64
WHEEL
{
  cat <<METADATA
Metadata-Version: 2.4
Name: convoy
Version: $version
Summary: Fine-tune, run and process language models with one native program
License-Expression: Apache-2.0
Requires-Dist: torch==2.11.*
Description-Content-Type: text/markdown
METADATA
  for file in "$facts"/licenses/*; do printf 'License-File: %s\n' "${file##*/}"; done
  printf '\n'
  cat README.md
} >"$facts/METADATA"

mkdir -p "$output"
file=$output/convoy-$version-py3-none-manylinux_${newest_glibc/./_}_x86_64.whl
python3 - "$wheel" "${facts##*/}/RECORD" "$file.part" <<'PYTHON'
import base64, hashlib, pathlib, sys, zipfile
folder, record, archive = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
lines = []
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        content = path.read_bytes()
        entry = zipfile.ZipInfo(name)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
        wheel.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    wheel.writestr(record, "".join(lines) + f"{record},,\n")
PYTHON
mv "$file.part" "$file"
printf '%s (%d MB)\n' "$file" $(($(stat -c %s "$file") / 1000000))
