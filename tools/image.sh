#!/usr/bin/env bash
# Makes dist/convoy-VERSION-image.tar, an OCI archive: a small Debian 12 with the programs and their
# LibTorch in /opt/convoy.
#   tools/image.sh [BUILD_FOLDER [OUTPUT_FOLDER]]
# Push it with any tool that reads OCI archives: skopeo copy
# oci-archive:dist/convoy-VERSION-image.tar docker://REGISTRY/convoy:VERSION Needs root, for the
# files of a system belong to root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh
source tools/programs.sh
build=${1:-build}
output=${2:-dist}
[ "$(id -u)" = 0 ] || fail "the image's system is made by root: run it with sudo"
command -v mmdebstrap >/dev/null || setup_apt mmdebstrap

stage=$(mktemp -d "${TMPDIR:-/var/tmp}/convoy-image-XXXXXX")
trap 'rm -rf "$stage"' EXIT
say "making the system"
mmdebstrap --quiet --variant=minbase --include=ca-certificates,libstdc++6 bookworm "$stage/root" || fail "mmdebstrap failed"
rm -rf "$stage"/root/var/lib/apt/lists/* "$stage"/root/var/cache/apt/*
stage_programs "$build" "$stage/programs"
mkdir -p "$stage/root/opt/convoy/.deps/site"
cp -r "$stage"/programs/* "$stage/root/opt/convoy/"
list_licences "$stage/root/opt/convoy/licenses"
torch=${CONVOY_TORCH:-.deps/site/torch}
parts=(torch/lib torch/version.py)
[ ! -d "$torch/../nvidia" ] || parts+=(nvidia)  # of a LibTorch with CUDA
(cd "$torch/.." && find -L "${parts[@]}" -name '*.so*' -o -name version.py) |
  tar -C "$torch/.." -chf - -T - | tar -xf - -C "$stage/root/opt/convoy/.deps/site"

say "packing"
mkdir -p "$output"
archive=$output/convoy-$version-image.tar
tar -C "$stage/root" --sort=name --numeric-owner -cf "$stage/layer.tar" .
python3 - "$stage" "$version" <<'PYTHON'
import gzip, hashlib, json, pathlib, shutil, sys

stage, version = pathlib.Path(sys.argv[1]), sys.argv[2]
layout = stage / "layout"
blobs = layout / "blobs/sha256"
blobs.mkdir(parents=True)


def digest_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def add(path, media_type):
    """Moves a file into the layout; returns what refers to it."""
    digest, size = digest_of(path), path.stat().st_size
    shutil.move(path, blobs / digest)
    return {"mediaType": f"application/vnd.oci.image.{media_type}", "digest": f"sha256:{digest}", "size": size}


def add_json(content, media_type):
    path = stage / "part.json"
    path.write_text(json.dumps(content))
    return add(path, media_type)


unpacked = digest_of(stage / "layer.tar")
with open(stage / "layer.tar", "rb") as plain, gzip.GzipFile(stage / "layer.tar.gz", "wb", 6, mtime=0) as packed:
    shutil.copyfileobj(plain, packed, 1 << 20)
layer = add(stage / "layer.tar.gz", "layer.v1.tar+gzip")
path = "PATH=/opt/convoy/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
config = add_json({"architecture": "amd64", "os": "linux",
                   "config": {"Env": [path, "LANG=C.UTF-8"], "Cmd": ["convoy", "--help"]},
                   "rootfs": {"type": "layers", "diff_ids": [f"sha256:{unpacked}"]}}, "config.v1+json")
manifest = add_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
                     "layers": [layer]}, "manifest.v1+json")
manifest["annotations"] = {"org.opencontainers.image.ref.name": version}
(layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
(layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
PYTHON
tar -C "$stage/layout" -cf "$archive.part" .
mv "$archive.part" "$archive"
printf '%s (%d MB)\n' "$archive" $(($(stat -c %s "$archive") / 1000000))
