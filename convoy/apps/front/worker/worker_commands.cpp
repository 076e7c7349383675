// SPDX-License-Identifier: Apache-2.0
//
// Commands that run in convoy-worker: eval and generate on any number of ranks, merge and bench
// on one. The front shows their help and starts them; the worker parses their flags from the
// same lists.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/generate/remote_answers.h"
#include "convoy/apps/front/generate/saved_samples.h"
#include "convoy/apps/front/harness/harness_run.h"
#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/apps/front/worker/worker_ranks.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/worker_calls.h"

namespace convoy::apps {
namespace {

// The flags that `convoy eval` handles in the front.
struct EvalModeFlags {
  bool per_row = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("per_row", per_row, "write only the negative log-likelihood of each row");
  }
};

constexpr const char* kRankHeading = "Ranks";

// Sets the flags in `of_front` and `of_worker`. The result's `left` are the words for the worker.
config::TakenFlags words_for_worker(Context& context, const std::vector<config::Section>& of_front,
                                    std::vector<config::Section> of_worker,
                                    const Words& arguments) {
  of_worker.push_back(config::list_fields(context.common));
  return config::take_flags(of_front, of_worker, arguments);
}

// Like words_for_worker(), for a command whose texts may come from servers. `of_worker` holds the
// lists of `call`.
config::TakenFlags answer_words_for_worker(Context& context, AnswerPlace& place,
                                           const settings::AnswerCall& call,
                                           std::vector<config::Section> of_worker,
                                           const Words& arguments) {
  config::TakenFlags taken = words_for_worker(
      context,
      {config::list_fields(place.ranks.members), config::list_fields(place.ranks.devices),
       config::list_fields(place.remote)},
      std::move(of_worker), arguments);
  check_remote_flags(place, call);
  if (place.remote.is_used() && !taken.positionals.empty())
    throw ConfigError(fmt::format("`{}` has no effect with --engine", taken.positionals[0]),
                      {.key = taken.positionals[0], .hint = "every value has a flag"});
  return taken;
}

int score_rows(Context& context, const Words& arguments) {
  HostRanks ranks;
  EvalModeFlags mode;
  settings::ScoreCall call;
  const config::TakenFlags taken =
      words_for_worker(context,
                       {config::list_fields(ranks.members), config::list_fields(ranks.devices),
                        config::list_fields(mode)},
                       call.lists(), arguments);
  return run_worker_on_ranks(context, ranks, "score", taken.left);
}

int measure_by_harness(Context& context, const Words& arguments) {
  HarnessFlags flags;
  settings::ServedModelFlags model;
  settings::EngineFlags engine;
  launch::DeviceFlags devices;
  const config::TakenFlags taken = config::take_flags(
      {config::list_fields(flags), config::list_fields(context.common)},
      {config::list_fields(model), config::list_fields(engine), config::list_fields(devices)},
      arguments);
  if (!taken.positionals.empty())
    throw ConfigError(fmt::format("`{}` has no effect with --tasks", taken.positionals[0]),
                      {.key = taken.positionals[0], .hint = "name the model by --model"});
  return run_harness_command(context, flags, taken.left);
}

// True when one of the words is this flag, which decides which other flags exist.
bool has_flag(const Words& arguments, std::string_view flag) {
  return std::any_of(arguments.begin(), arguments.end(), [flag](const std::string& argument) {
    const std::string word = config::dashed(argument);
    return word == flag || word.starts_with(fmt::format("{}=", flag));
  });
}

int run_eval(Context& context, const Words& arguments) {
  if (has_flag(arguments, "--per-row")) return score_rows(context, arguments);
  if (has_flag(arguments, "--tasks")) return measure_by_harness(context, arguments);
  AnswerPlace place;
  settings::EvalCall call;
  const config::TakenFlags taken =
      answer_words_for_worker(context, place, call, call.lists(), arguments);
  if (place.remote.is_used()) return evaluate_remotely(context, place.remote, call);
  if (!call.flags.samples.empty()) return evaluate_saved_samples(context, call, taken.positionals);
  return run_worker_on_ranks(context, place.ranks, "eval", taken.left);
}

int run_generate(Context& context, const Words& arguments) {
  AnswerPlace place;
  settings::GenerateCall call;
  const config::TakenFlags taken =
      answer_words_for_worker(context, place, call, call.lists(), arguments);
  if (place.remote.is_used()) return generate_remotely(context, place.remote, call);
  return run_worker_on_ranks(context, place.ranks, "generate", taken.left,
                             call.flags.interactive ? "a conversation" : "");
}

int run_merge(Context& context, const Words& arguments) {
  HostRanks one;
  settings::MergeCall call;
  const config::TakenFlags taken =
      words_for_worker(context, {config::list_fields(one.devices)}, call.lists(), arguments);
  return run_worker_on_ranks(context, one, "merge", taken.left, "models merge");
}

// `alone` as for run_worker_on_ranks().
template <class Call>
int run_bench(Context& context, const std::string& command, const Words& arguments,
              const std::string& alone) {
  HostRanks ranks;
  Call call;
  const config::TakenFlags taken = words_for_worker(
      context, {config::list_fields(ranks.members), config::list_fields(ranks.devices)},
      call.lists(), arguments);
  return run_worker_on_ranks(context, ranks, command, taken.left, alone);
}

int bench_train(Context& context, const Words& arguments) {
  return run_bench<settings::BenchTrainCall>(context, "bench-train", arguments, "");
}

int bench_generate(Context& context, const Words& arguments) {
  return run_bench<settings::BenchGenerateCall>(context, "bench-generate", arguments,
                                                "bench generate");
}

int bench_peak(Context& context, const Words& arguments) {
  return run_bench<settings::BenchCall>(context, "bench-peak", arguments, "bench peak");
}

// Here `--device` names the GPU to predict, not the device to run on. Parts that are measured run
// on the default device of this host.
int bench_predict(Context& context, const Words& arguments) {
  settings::BenchPredictFlags flags;
  const config::TakenFlags taken =
      words_for_worker(context, {}, {config::list_fields(flags)}, arguments);
  return run_worker_on_ranks(context, HostRanks{}, "predict", taken.left, "bench predict");
}

}  // namespace

Command eval_command() {
  return {
      .name = "eval",
      .summary = "Evaluate a model on rows, by loss and by answers",
      .usage =
          "convoy eval CONFIG.yaml [key=value ...] [--split test|val] [--adapter D] [--generate]\n"
          "convoy eval --model D [--adapter D] --data F [--generate] [--ranks N]\n"
          "convoy eval --per-row --model D --data F [--output O.jsonl] [--supervise "
          "assistant|last|all]\n"
          "convoy eval --samples F.jsonl [--metrics M,..] [--report R.html]\n"
          "convoy eval --tasks T,.. --model D [--adapter D] [--limit N] [--output D]",
      .examples =
          "convoy eval run.yaml --adapter runs/sums/adapter --generate\n"
          "convoy eval --model models/tally-3m --data test.jsonl --output results\n"
          "convoy eval --per-row --model models/tally-3m --data rows.jsonl --output scores.jsonl\n"
          "convoy eval --samples results/samples.jsonl --json\n"
          "convoy eval --tasks arc_easy,hellaswag --model models/tally-3m --output results",
      .flags = {flags_of<settings::EvalFlags>("Rows and results"),
                flags_of<EvalModeFlags>("Kinds of evaluation"),
                flags_of<settings::MetricFlags>("Metrics"),
                flags_of<settings::SamplingFlags>("Answers"),
                flags_of<settings::EngineFlags>("Engine"), flags_of<settings::ModelFlags>("Model"),
                flags_of<settings::RemoteSettings>("Servers"),
                flags_of<launch::DeviceFlags>("Devices"),
                flags_of<launch::HostRankFlags>(kRankHeading),
                flags_of<settings::ScoreFlags>("With --per-row, in place of the above"),
                flags_of<HarnessFlags>("With --tasks, in place of the above")},
      .first_flags = {"model", "adapter", "data", "split", "limit", "output", "generate", "metrics",
                      "per-row", "samples", "devices", "ranks"},
      .run = run_eval,
      .group = HelpGroup::TrainAndUse};
}

Command generate_command() {
  return {
      .name = "generate",
      .summary = "Generate text for prompts",
      .usage =
          "convoy generate --model D [--adapter D] (--prompts F.jsonl | --prompt TEXT | "
          "--interactive) [--output O.jsonl] [--ranks N]",
      .examples =
          "convoy generate --model models/tally-3m --prompt $'Question: 12 + 7 = ?\\nAnswer:' "
          "--chat off --greedy\n"
          "convoy generate --model models/tally-3m --adapter runs/sums/adapter --prompts "
          "test.jsonl --output answers.jsonl --ranks 2\n"
          "convoy generate --model models/tally-3m --interactive --temperature 0.7",
      .flags = {flags_of<settings::GenerateFlags>("Prompts and answers"),
                flags_of<settings::SamplingFlags>("Sampling"),
                flags_of<settings::EngineFlags>("Engine"), flags_of<settings::ModelFlags>("Model"),
                flags_of<settings::RemoteSettings>("Servers"),
                flags_of<launch::DeviceFlags>("Devices"),
                flags_of<launch::HostRankFlags>(kRankHeading)},
      .first_flags = {"model", "adapter", "prompt", "prompts", "interactive", "output",
                      "max-new-tokens", "temperature", "greedy", "dtype", "devices", "ranks"},
      .run = run_generate,
      .group = HelpGroup::TrainAndUse};
}

Command models_merge_action() {
  return {
      .name = "merge",
      .summary = "Add a LoRA adapter to its model's weights",
      .usage =
          "convoy models merge --model D --adapter D --output D [--dtype auto|fp32|bf16|fp16] "
          "[--base dequantized|full]",
      .examples =
          "convoy models merge --model models/tally-3m --adapter runs/sums/adapter --output "
          "merged\n"
          "convoy models merge --model models/tally-3m --adapter runs/sums/adapter --output "
          "merged --dtype bf16\n"
          "convoy models merge --model models/tally-3m --adapter runs/qlora/adapter --output "
          "merged --quantization nf4 --base dequantized",
      .flags = {flags_of<settings::ModelSourceFlags>("Model"),
                flags_of<settings::MergeFlags>("Result"), flags_of<launch::DeviceFlags>("Devices")},
      .first_flags = {"model", "adapter", "output", "dtype", "base", "base-model", "data",
                      "text-only", "quantization", "devices"},
      .run = run_merge};
}

Command bench_command() {
  return {
      .name = "bench",
      .summary = "Time Convoy beside its peers, and the machine",
      .usage = "convoy bench train|generate|peak|predict [flags]",
      .examples =
          "convoy bench train --mode lora --dtype bf16\n"
          "convoy bench generate --batches 1,8 --rounds 3\n"
          "convoy bench peak",
      .actions = {
          {.name = "train",
           .summary = "Time the steps of a training",
           .usage = "convoy bench train [--ranks N] [--strategy S] [flags]",
           .examples = "convoy bench train --mode lora --dtype bf16\n"
                       "convoy bench train --mode full --geometry tiny --no-peer --json\n"
                       "convoy bench train --mode full --ranks 2 --strategy zero3 --global-batch 8",
           .flags = {flags_of<settings::BenchTrainFlags>("Training"),
                     flags_of<settings::BenchFlags>("Measurement"),
                     flags_of<launch::DeviceFlags>("Devices"),
                     flags_of<launch::HostRankFlags>(kRankHeading)},
           .first_flags = {"mode", "strategy", "seq", "batch", "steps", "output", "geometry",
                           "dtype", "threads", "no-peer", "devices", "ranks"},
           .run = bench_train},
          {.name = "generate",
           .summary = "Time new tokens of rows together",
           .usage = "convoy bench generate [flags]",
           .examples = "convoy bench generate --batches 1,8 --rounds 3\n"
                       "convoy bench generate --geometry tiny --no-peer --weights int8\n"
                       "convoy bench generate --peer llama.cpp --weights int4",
           .flags = {flags_of<settings::BenchGenerateFlags>("Generation"),
                     flags_of<settings::BenchFlags>("Measurement"),
                     flags_of<launch::DeviceFlags>("Devices")},
           .first_flags = {"batches", "prompts", "prompt-tokens", "new-tokens", "weights",
                           "quantization", "geometry", "dtype", "threads", "rounds", "peer",
                           "devices"},
           .run = bench_generate},
          {.name = "peak",
           .summary = "Measure how fast the machine multiplies, by type",
           .usage = "convoy bench peak [--devices cpu|cuda] [--threads N]",
           .examples = "convoy bench peak\nconvoy bench peak --devices cpu --threads 1 --json",
           .flags = {flags_of<launch::DeviceFlags>()},
           .run = bench_peak},
          {.name = "predict",
           .summary = "Count a step, and predict its time on a GPU",
           .usage = "convoy bench predict --device NAME (--model D | --config CONFIG.json) "
                    "(--decode | --prefill | --train) [flags]",
           .examples =
               "convoy bench predict --device h200 --model models/tally-3m --decode --rows 16 "
               "--context 200\n"
               "convoy bench predict --device a100 --config config.json --prefill --tokens 4096 "
               "--json\n"
               "convoy bench predict --device h200 --config config.json --train --mode lora "
               "--tokens 4096",
           .flags = {flags_of<settings::BenchPredictFlags>("The step")},
           .first_flags = {"device", "model", "config", "decode", "prefill", "train", "rows",
                           "context", "tokens", "mode", "ranks", "strategy"},
           .run = bench_predict}}};
}

}  // namespace convoy::apps
