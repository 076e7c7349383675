#!/usr/bin/env bash
# Tests `eval`, `score` and `generate` on several ranks: every number of ranks gives the same bytes,
# only one rank prints messages, and there is no output when a rank fails or a person stops the
# command.
#   shared_rows_test.sh SOURCE_FOLDER PROGRAM_FOLDER
set -euo pipefail
source=$1 convoy=$2/convoy
. "$source/tests/files/frame.sh"
model=$source/examples/tally-3m
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE XDG_CACHE_HOME=$work/cache
cd "$work"

same() { cmp "$1" "$2" || fail "$1 and $2 differ"; }

head -n 7 "$source/examples/sums/test.jsonl" >seven.jsonl
head -n 2 "$source/examples/sums/test.jsonl" >two.jsonl
sed 's/"question"/"prompt"/; s/, "answer".*/}/' seven.jsonl >prompts.jsonl

say "score: seven rows in batches of two, on more ranks than rows too"
for rows in seven two; do
  for ranks in 1 2 3; do
    "$convoy" score --model "$model" --data $rows.jsonl --batch-size 2 --nproc $ranks --output $rows-$ranks.jsonl 2>err ||
      fail "score on $ranks ranks: $(cat err)"
  done
  same $rows-1.jsonl $rows-2.jsonl
  same $rows-1.jsonl $rows-3.jsonl
done
[ "$(wc -l <seven-3.jsonl)" = 7 ] || fail "seven rows in, $(wc -l <seven-3.jsonl) out"
grep -q '^scored 7 rows$\|scored 7 rows' <("$convoy" score --model "$model" --data seven.jsonl --nproc 2 --output x 2>&1) ||
  fail "the leading rank says what was done"
"$convoy" score --model "$model" --data seven.jsonl --batch-size 2 --nproc 2 2>/dev/null >stdout.jsonl
same seven-1.jsonl stdout.jsonl

head -n 3 seven-1.jsonl >three-of-seven.jsonl
"$convoy" score --model "$model" --data seven.jsonl --batch-size 2 --nproc 2 --limit 3 --output limited.jsonl 2>err ||
  fail "score --limit: $(cat err)"
same three-of-seven.jsonl limited.jsonl

say "generate: every draw is the same"
for ranks in 1 2 3; do
  "$convoy" generate --model "$model" --prompts prompts.jsonl --n 2 --temperature 1.5 --max-new-tokens 24 --batch-size 3 \
    --nproc $ranks --output answers-$ranks.jsonl 2>err || fail "generate on $ranks ranks: $(cat err)"
done
same answers-1.jsonl answers-2.jsonl
same answers-1.jsonl answers-3.jsonl
[ "$(wc -l <answers-3.jsonl)" = 14 ] || fail "14 answers wanted"
grep -q '14/14' err || fail "one bar shows the answers of all ranks: $(cat err)"
for ranks in 1 2; do
  "$convoy" generate --model "$model" --prompt "Question: 12 + 7 = ?" --greedy --max-new-tokens 8 --nproc $ranks \
    2>/dev/null >prompt-$ranks.txt
done
same prompt-1.txt prompt-2.txt

cpus=$(env -u OMP_NUM_THREADS nproc)  # without the variable, which would limit the count of nproc
if [ "$cpus" -gt 1 ]; then
  say "generate: other work at the start takes threads away, and no bit depends on it"
  busy=()
  for cpu in $(seq "$cpus"); do
    timeout 60 sh -c 'while :; do :; done' &
    busy+=($!)
  done
  ask=(generate --model "$model" --prompts prompts.jsonl --n 2 --temperature 1.5 --max-new-tokens 24 --batch-size 3)
  env -u OMP_NUM_THREADS "$convoy" "${ask[@]}" --output beside.jsonl 2>err || fail "generate beside other work: $(cat err)"
  env -u OMP_NUM_THREADS "$convoy" process --model "$model" --data seven.jsonl --stages generate --max-tokens 8 --output beside.json \
    --run-dir beside 2>process-err >/dev/null || fail "process beside other work: $(cat process-err)"
  kill "${busy[@]}"
  wait "${busy[@]}" 2>/dev/null || true
  grep -q "^\[worker 0\] 1 thread (of $cpus cores; .* are busy with other work): --threads N" process-err ||
    fail "process says its threads: $(cat process-err)"
  grep -q "^1 thread (of $cpus cores; .* are busy with other work): --threads N" err || fail "the threads are said: $(cat err)"
  same answers-1.jsonl beside.jsonl
  "$convoy" "${ask[@]}" --threads 3 --output three.jsonl 2>err || fail "generate --threads 3: $(cat err)"
  if grep -q 'busy with other work' err; then fail "the user chose"; fi
  same answers-1.jsonl three.jsonl
fi

say "eval: a configuration names the model before its training"
printf 'model: {name: %s}\ndata: {train_path: seven.jsonl, test_path: seven.jsonl}\ntrain: {output_dir: here}\n' "$model" >run.yaml
"$convoy" eval run.yaml --limit 2 2>err >/dev/null || fail "eval run.yaml: $(cat err)"
grep -q "^evaluating $model as it was before the training: --adapter RUN/adapter " err || fail "the adapter is not used: $(cat err)"
mkdir -p here/adapter
"$convoy" eval run.yaml --limit 2 2>err >/dev/null || fail "eval run.yaml: $(cat err)"
grep -q -- "--adapter here/adapter evaluates" err || fail "the adapter of the run is named: $(cat err)"

say "eval: every figure is the same"
for ranks in 1 2 3; do
  "$convoy" eval --model "$model" --data seven.jsonl --generate --max-new-tokens 24 --batch-size 2 --json --nproc $ranks \
    --output-dir eval-$ranks 2>err >figures-$ranks.json || fail "eval on $ranks ranks: $(cat err)"
done
for ranks in 2 3; do
  same figures-1.json figures-$ranks.json
  same eval-1/metrics.json eval-$ranks/metrics.json
  same eval-1/samples.jsonl eval-$ranks/samples.jsonl
done
[ "$(wc -l <figures-3.json)" = 1 ] || fail "one rank prints: $(cat figures-3.json)"

say "a rank that fails ends all, with its error and without an output"
cp seven.jsonl broken.jsonl
printf '{"question": "no answer", "answer": true}\n' >>broken.jsonl
code=0
"$convoy" score --model "$model" --data broken.jsonl --batch-size 2 --nproc 2 --output broken-out.jsonl 2>err || code=$?
[ $code = 10 ] || fail "wanted exit 10, found $code: $(cat err)"
tail -n 1 err | grep -q '"code":10' || fail "the last line is the error's: $(cat err)"
grep -q 'broken.jsonl:8' err || fail "file and line are named: $(cat err)"
[ ! -e broken-out.jsonl ] || fail "a file that is not whole was published"

say "Ctrl-C"
for copy in $(seq 40); do cat "$source/examples/sums/test.jsonl"; done >many.jsonl
: >err  # empty, so that lines of the last command do not count for this one
set -m
"$convoy" score --model "$model" --data many.jsonl --nproc 2 --output many-out.jsonl 2>err &
job=$!
set +m
wait_until 60 grep -q '^score: row\|^score: ' err || fail "no progress: $(cat err)"
kill -INT -- -$job
code=0
wait $job || code=$?
[ $code = 130 ] || fail "wanted exit 130 after Ctrl-C, found $code: $(cat err)"
[ ! -e many-out.jsonl ] || fail "a file that is not whole was published"

say "Ctrl-C of generate keeps the finished answers, and the same command goes on"
for copy in $(seq 30); do cat prompts.jsonl; done >many-prompts.jsonl
many=(generate --model "$model" --prompts many-prompts.jsonl --n 2 --temperature 1.5 --max-new-tokens 60 --batch-size 2)
"$convoy" "${many[@]}" --output unbroken.jsonl 2>err || fail "generate: $(cat err)"
: >err
set -m
"$convoy" "${many[@]}" --nproc 2 --output stopped.jsonl 2>err &
job=$!
set +m
wait_until 60 grep -q '^generate: answer' err || fail "no progress: $(cat err)"
kill -INT -- -$job
code=0
wait $job || code=$?
[ $code = 75 ] || fail "wanted exit 75 after Ctrl-C, found $code: $(cat err)"
grep -q 'of 420 answers are finished and kept in stopped.jsonl.partial (the same command resumes from them)' err || fail "$(cat err)"
tail -n 1 err | grep -q '"code":75' || fail "the last line is JSON: $(cat err)"
[ ! -e stopped.jsonl ] || fail "a file that is not whole was published"
"$convoy" "${many[@]}" --nproc 2 --output stopped.jsonl 2>err || fail "the next start: $(cat err)"
grep -q 'finished answers are taken from stopped.jsonl.partial' err || fail "the next start took nothing: $(cat err)"
same unbroken.jsonl stopped.jsonl

say "refused"
code=0
"$convoy" generate --model "$model" --interactive --nproc 2 2>err || code=$?
[ $code = 2 ] || fail "--interactive on two ranks: wanted exit 2, found $code"
grep -q 'a conversation runs on one rank, found 2' err || fail "$(cat err)"
say "ok"
