#!/usr/bin/env bash
# The manifests that `convoy submit --engine kubernetes` writes are valid under the published
# schemas of Kubernetes, and have no key that the schemas lack.
#   schema_test.sh SOURCE_FOLDER PROGRAM_FOLDER VIRTUAL_ENVIRONMENT
# The schemas come with the package kubernetes-validate, which is installed into the virtual
# environment (made when it is not there). Exit 77: skipped, with the reason.
set -uo pipefail
source=$1 programs=$2 environment=$3
source "$source/tests/files/packages.sh"
versions="1.29 1.33 1.37"

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

validate=$environment/bin/kubernetes-validate
python_environment "$environment" kubernetes-validate==1.37.0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
submit=("$programs/convoy" submit --engine kubernetes --image registry.local/team/convoy:1.0)

"${submit[@]}" -- convoy train run.yaml >smallest.yaml || fail "convoy submit"
"${submit[@]}" --name demo --namespace lab --nodes 4 --nproc-per-node gpu --gpus-per-node 8 --cpus-per-task 32 --mem 512G \
  --time 1-12:00:00 --signal-before 300 --max-requeues 7 --port 29555 --volume datasets:/data --volume runs:/runs \
  --env HOME --env 'GREETING=it'\''s "$(HOME)": yes
or no' -- convoy launch 'a b' '' yes 12 '{"json": [1]}' $'tab\tline\nbreak' 'grüße 漢 😀' '- # : @' >everything.yaml ||
  fail "convoy submit with every flag"

for version in $versions; do
  for manifest in smallest everything; do
    "$validate" --strict --quiet -k "$version" "$manifest.yaml" >"$manifest.out" 2>&1 ||
      fail "$manifest.yaml does not hold against Kubernetes $version: $(cat "$manifest.out")"
  done
done

# Tests the check itself: it finds a key that no schema has.
sed 's/completionMode:/completionFashion:/' everything.yaml >wrong.yaml
! "$validate" --strict --quiet wrong.yaml >/dev/null 2>&1 || fail "an unknown key was not found"
printf 'valid for Kubernetes %s\n' "$versions"
