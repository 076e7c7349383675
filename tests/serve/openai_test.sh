#!/usr/bin/env bash
# `convoy serve`, called by the packages openai and anthropic and by raw sockets: openai_test.sh
# SOURCE_FOLDER PROGRAM_FOLDER. Exit 77: skipped, with the reason.
set -euo pipefail
source=$1 programs=$2
cd "$source"
source tests/files/packages.sh
environment=.deps/openai
python_environment "$environment" openai==2.8.1 anthropic==2.14.0 prometheus-client==0.23.1 jsonschema==4.25.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# train NAME KEY=VALUE...: trains an adapter into $work/NAME/adapter.
train() {
  "$programs/convoy" train examples/sums/lora.yaml --run-dir "$work/$1" "${@:2}" >"$work/$1.log" 2>&1 ||
    { cat "$work/$1.log"; exit 1; }
}
# The first adapter gives other answers than its base. The second one calls a tool and answers with
# the tool's result.
train sums train.steps=12
cat tests/serve/call.json tests/serve/call.json >"$work/calls.jsonl"
train caller train.steps=40 train.batch_size=2 train.learning_rate=1e-2 model.max_seq_len=512 train.eval_strategy=no train.save_strategy=no \
  data.train_path="$work/calls.jsonl" data.val_path= data.split.val_ratio=0 data.template_path=tests/serve/tools.jinja
for test in openai_client_test anthropic_client_test answer_forms_test; do
  "$environment/bin/python" "tests/serve/$test.py" "$programs/convoy" examples/tally-3m "$work/sums/adapter" "$work/caller/adapter"
done
