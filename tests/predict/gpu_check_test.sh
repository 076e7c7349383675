#!/usr/bin/env bash
# gpu_check_test.sh SOURCE: tests how tools/gpu_check.sh compares predictions with measurements. The
# measurements come from a file here.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  printf 'gpu_check_test: %s\n' "$*" >&2
  exit 1
}
# line NAME PREDICTED [MEASURED [OF_PRODUCTS]]: prints a line in the form of `bench predict --json`,
# in which the products are predicted to take 3 ms.
line() {
  printf '%s\t{"tool":"convoy","ops":[{"op":"mm","device_ms":3.0,"share":0.9'"${4:+,\"measured_device_ms\":$4}"'},{"op":"add","device_ms":0.1,"share":0.03,"measured_device_ms":0.9}],"device_ms":3.1,"predicted_ms":%s,"roofline_ms":2.0%s}\n' \
    "$1" "$2" "${3:+,\"measured_ms\":$3}"
}
# compared CODE: checks that gpu_check with the lines of stdin ends with this code.
compared() {
  cat >"$folder/lines.tsv"
  local code=0
  "$1/tools/gpu_check.sh" --part predict --predictions "$folder/lines.tsv" --output "$folder/checked" >"$folder/said.txt" 2>&1 || code=$?
  [ "$code" -eq "$2" ] || fail "ended with $code, not $2: $(cat "$folder/said.txt")"
}
says() { grep -qE -- "$1" "$folder/said.txt" || fail "did not print $1: $(cat "$folder/said.txt")"; }

{ line "qwen7b decode 16" 4.0 4.79 && line "qwen7b prefill 2048" 5e+1 40.1; } | compared "$1" 0
says '^qwen7b decode 16 +4\.000 +4\.790 +1\.20$'
says '^qwen7b prefill 2048 +50\.000 +40\.100 +0\.80$'
says '^predict: 2 steps and their ops are within a fifth'

{ line fits 4.0 4.0 && line slow 4.0 4.9 && line fast 4.0 3.1; } | compared "$1" 1
says '^slow .* 1\.2[0-9]  <- more than a fifth apart$'
says '^fast .* 0\.7[0-9]  <- more than a fifth apart$'
says '^fits .* 1\.00$'
says '^predict: FAILED: marked times'

line whole 4.0 4.1 3.1 | compared "$1" 0
says '^  mm +3\.000 +3\.100 +1\.03$'
line products 4.0 4.1 3.9 | compared "$1" 1
says '^products .* 1\.0[23]$'
says '^  mm .* 1\.30  <- more than a fifth apart$'
! grep -q '^  add' "$folder/said.txt" || fail "small ops are rough"

{ line measured 4.0 4.0 && line alone 4.0; } | compared "$1" 1
says '^alone +was not measured$'
says '^predict: FAILED: a step was not measured'

compared "$1" 1 </dev/null
says '^predict: FAILED'

# Convoy accepts every command of the part. Without a GPU the commands measure nothing.
cat >"$folder/nvidia-smi" <<'SMI'
#!/bin/sh
echo "NVIDIA H200"
SMI
chmod +x "$folder/nvidia-smi"
code=0
PATH=$folder:$PATH "$1/tools/gpu_check.sh" --part predict --geometry qwen05b --output "$folder/counted" >"$folder/said.txt" 2>&1 || code=$?
[ "$code" -eq 1 ] || fail "ended with $code, not 1: $(cat "$folder/said.txt")"
[ "$(grep -c '^qwen05b .*was not measured$' "$folder/said.txt")" -eq 11 ] || fail "a prediction was refused: $(cat "$folder/said.txt")"
