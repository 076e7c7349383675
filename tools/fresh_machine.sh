#!/usr/bin/env bash
# Tries README's two commands on a bare Debian 12, so that no package of this machine hides a
# missing step. It makes the root of the system with mmdebstrap, clones the project's last commit
# into it, runs each command there, and prints its wall time and processor time.
#   tools/fresh_machine.sh [FOLDER [COMMAND...]]
# Default: a temporary folder, `./run demo` and `./run test`.
# Needs root. The machine's own settings for mirrors (apt, pip, cargo, certificates, PIP_* and
# *_proxy) are passed on.
set -euo pipefail
source_folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
source "$source_folder/tools/setup.sh"
folder=${1:-$(mktemp -d "${TMPDIR:-/var/tmp}/convoy-fresh-XXXXXX")}
shift || true
[ $# -gt 0 ] || set -- "./run demo" "./run test"
[ "$(id -u)" = 0 ] || fail "a bare system is made by root" "run it with sudo"
root=$folder/root
mkdir -p "$folder"

[ -e "$root/etc/debian_version" ] || {
  command -v mmdebstrap >/dev/null || (cd "$source_folder" && setup_apt mmdebstrap)
  say "making a bare Debian 12 in $root"
  mmdebstrap --quiet --variant=apt --include=ca-certificates,git bookworm "$root" || fail "mmdebstrap failed" "read its lines above"
}
for path in /etc/apt/apt.conf.d /etc/pip.conf "$HOME/.cargo/config.toml" /etc/ssl/certs /usr/local/share/ca-certificates; do
  [ -e "$path" ] || continue
  mkdir -p "$root/$(dirname "${path/#$HOME//root}")"
  cp -rLn "$path" "$root/$(dirname "${path/#$HOME//root}")/"
done
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
rm -rf "$root/root/convoy"
git clone --quiet "$source_folder" "$root/root/convoy"

environment=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM="${TERM:-dumb}")
while read -r variable; do environment+=("$variable"); done < <(env | grep -iE '^(PIP_[A-Z_]+|[a-z]+_proxy)=' | grep -v '^PIP_CERT=' || true)
# The certificates of this machine are kept apart, because a package may rewrite the system's bundle
# without them.
bundle=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
if [ -e "$bundle" ]; then
  cp -L "$bundle" "$root/etc/ssl/machine.crt"
  for variable in SSL_CERT_FILE PIP_CERT CURL_CA_BUNDLE REQUESTS_CA_BUNDLE CARGO_HTTP_CAINFO; do
    environment+=("$variable=/etc/ssl/machine.crt")
  done
fi
for command in "$@"; do
  say "$command"
  env -i "${environment[@]}" unshare --mount --pid --fork --kill-child bash -c '
    mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" && mount --rbind /sys "$1/sys" && mount -t tmpfs tmpfs "$1/tmp"
    exec chroot "$1" bash -c "cd /root/convoy && TIMEFORMAT=\"wall %0R s, processor %0U s + %0S s of the system\" && time $2"
  ' _ "$root" "$command" || fail "'$command' failed in $root" "look there: chroot $root"
done
say "all of it ran in $root; remove that folder when you are done with it"
