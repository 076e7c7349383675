#!/usr/bin/env bash
# The image is a valid OCI archive: every part is at the place that its digest names, and convoy
# runs in the system of the image. That system is a small one with libraries of this machine,
# because a Debian would have to be fetched.
#   image_test.sh SOURCE_FOLDER BUILD_FOLDER
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || { echo "skipped: the image's system is made by root"; exit 0; }

# Stand-ins for mmdebstrap and LibTorch: a system with the C and C++ libraries of this machine, and
# an empty LibTorch.
mkdir -p "$work/bin" "$work/site/torch/lib"
cat >"$work/bin/mmdebstrap" <<MMDEBSTRAP
#!/usr/bin/env bash
set -euo pipefail
root=\${*: -1}
mkdir -p "\$root"/{bin,etc,proc,tmp,var/lib/apt/lists,var/cache/apt}
echo "PRETTY_NAME=small" >"\$root/etc/os-release"
ldd "$build/bin/convoy" | grep -oE '/[^ ]+/(ld-linux-x86-64|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+))\.so\.[0-9]+' | sort -u |
  while read -r library; do cp -L --parents "\$library" "\$root"; done
MMDEBSTRAP
chmod +x "$work/bin/mmdebstrap"
touch "$work/site/torch/lib/libtorch_cpu.so"
echo "__version__ = '2.11.0'" >"$work/site/torch/version.py"

PATH=$work/bin:$PATH CONVOY_TORCH=$work/site/torch "$source/tools/image.sh" "$build" "$work/dist" >"$work/said.txt" ||
  fail "tools/image.sh"
archive=$(echo "$work"/dist/convoy-*-image.tar)
grep -qF "$archive (" "$work/said.txt" || fail "it did not say what it made: $(cat "$work/said.txt")"
mkdir "$work/layout" "$work/root"
tar -C "$work/layout" -xf "$archive"

python3 - "$work" <<'PYTHON'
import gzip, hashlib, json, pathlib, sys

work = pathlib.Path(sys.argv[1])
layout = work / "layout"
oci = "application/vnd.oci.image."
read = set()


def digest_of(file):
    return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def blob(descriptor, media_type):
    assert descriptor["mediaType"] == oci + media_type, descriptor
    path = layout / "blobs" / descriptor["digest"].replace(":", "/")
    assert path.stat().st_size == descriptor["size"], descriptor
    with open(path, "rb") as file:
        assert digest_of(file) == descriptor["digest"], descriptor
    read.add(path)
    return path


assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
index = json.loads((layout / "index.json").read_text())
assert index["schemaVersion"] == 2 and len(index["manifests"]) == 1, index
tag = index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
assert any(work.glob(f"dist/convoy-{tag}-image.tar")), tag
manifest = json.loads(blob(index["manifests"][0], "manifest.v1+json").read_text())
assert manifest["schemaVersion"] == 2 and manifest["mediaType"] == oci + "manifest.v1+json", manifest
config = json.loads(blob(manifest["config"], "config.v1+json").read_text())
assert (config["architecture"], config["os"]) == ("amd64", "linux"), config
assert config["config"]["Cmd"] == ["convoy", "--help"], config
assert len(manifest["layers"]) == len(config["rootfs"]["diff_ids"]) == 1, manifest
layer = blob(manifest["layers"][0], "layer.v1.tar+gzip")
with gzip.open(layer) as unpacked:
    assert config["rootfs"]["diff_ids"] == [digest_of(unpacked)], config
extra = {path for path in (layout / "blobs").rglob("*") if path.is_file()} - read
assert not extra, extra
(work / "layer").symlink_to(layer)
(work / "environment").write_text("\n".join(config["config"]["Env"]) + "\n")
PYTHON

# Runs a program as a container would, with the files, the environment and the program of the image.
tar -C "$work/root" -xzf "$work/layer"
for file in bin/convoy bin/convoy-worker licenses/convoy.txt .deps/site/torch/{version.py,lib/libtorch_cpu.so}; do
  [ -e "$work/root/opt/convoy/$file" ] || fail "the image lacks $file"
done
mapfile -t environment <"$work/environment"
in_image() { # the loader finds libraries beside a program through /proc
  env -i "${environment[@]}" unshare --mount sh -c 'mount --bind /proc "$0/proc" && exec chroot "$0" "$@"' "$work/root" "$@"
}
if in_image convoy --version >"$work/version.txt"; then
  grep -q "^convoy [0-9]" "$work/version.txt" && grep -q "^LibTorch 2\.11\.0" "$work/version.txt" || fail "in the image: $(cat "$work/version.txt")"
elif unshare --mount mount --bind /proc "$work/root/proc" 2>/dev/null; then
  fail "convoy does not run in the image"
else
  echo "no mounts here: convoy was not run in the image"
fi
echo "image works"
