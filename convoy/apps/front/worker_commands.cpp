// SPDX-License-Identifier: Apache-2.0
//
// Commands that run in convoy-worker: eval, score, generate on as many ranks as are asked for,
// merge and bench in one. The front shows their help and starts them; the worker reads their flags,
// from the same lists.
#include "convoy/apps/front/saved_samples.h"
#include "convoy/apps/front/shared_actions.h"
#include "convoy/apps/front/worker_program.h"
#include "convoy/apps/front/worker_ranks.h"
#include "convoy/settings/command_flags.h"
#include "convoy/settings/metric_settings.h"

namespace convoy::apps {
namespace {

template <class... Flags>
std::string flag_tables() {
  return (config::flag_table_of<Flags>() + ...);
}

// Of the flags of benchmarks, peak measures by one.
std::string peak_flag_table() {
  return table_of<settings::BenchFlags>({"threads"})() +
         config::flag_table_of<launch::DeviceFlags>();
}

// Sets the flags that are the front's; those of the worker stay in what is returned.
template <class... Flags>
std::vector<std::string> take_flags(Context& context, const std::vector<config::Section>& of_front,
                                    const std::vector<std::string>& arguments,
                                    Flags&... of_worker) {
  return config::take_flags(
      of_front, {config::list_fields(of_worker)..., config::list_fields(context.common)},
      arguments);
}

template <class... Flags>
std::vector<std::string> take_rank_flags(Context& context, HostRanks& ranks,
                                         const std::vector<std::string>& arguments,
                                         Flags&... of_worker) {
  return take_flags(context,
                    {config::list_fields(ranks.members), config::list_fields(ranks.devices)},
                    arguments, of_worker...);
}

int run_eval(Context& context, const std::vector<std::string>& arguments) {
  HostRanks ranks;
  settings::EvalFlags flags;
  settings::MetricFlags metrics;
  settings::SamplingFlags sampling;
  settings::EngineFlags engine;
  settings::ModelFlags model;
  const std::vector<std::string> left =
      take_rank_flags(context, ranks, arguments, flags, metrics, sampling, engine, model);
  if (!flags.samples.empty()) return evaluate_saved_samples(context, left);
  return run_worker_on_ranks(context, ranks, "eval", left);
}

int run_score(Context& context, const std::vector<std::string>& arguments) {
  HostRanks ranks;
  settings::ScoreFlags flags;
  settings::ModelFlags model;
  const std::vector<std::string> left = take_rank_flags(context, ranks, arguments, flags, model);
  return run_worker_on_ranks(context, ranks, "score", left);
}

int run_generate(Context& context, const std::vector<std::string>& arguments) {
  HostRanks ranks;
  settings::GenerateFlags flags;
  settings::SamplingFlags sampling;
  settings::EngineFlags engine;
  settings::ModelFlags model;
  const std::vector<std::string> left =
      take_rank_flags(context, ranks, arguments, flags, sampling, engine, model);
  return run_worker_on_ranks(context, ranks, "generate", left,
                             flags.interactive ? "a conversation" : "");
}

int run_merge(Context& context, const std::vector<std::string>& arguments) {
  HostRanks one;
  settings::MergeFlags flags;
  settings::ModelSourceFlags model;
  const std::vector<std::string> left =
      take_flags(context, {config::list_fields(one.devices)}, arguments, flags, model);
  return run_worker_on_ranks(context, one, "merge", left, "merge");
}

int run_bench(Context& context, const std::vector<std::string>& arguments) {
  HostRanks ranks;
  settings::BenchFlags flags;
  settings::BenchTrainFlags train;
  settings::BenchGenerateFlags generate;
  const std::vector<std::string> left =
      take_rank_flags(context, ranks, arguments, flags, train, generate);
  const std::string name = left.empty() ? "" : left.front();
  return run_worker_on_ranks(
      context, ranks, "bench", left,
      name == "train" ? "" : "bench " + (name == "peak" ? name : "generate"));
}

}  // namespace

Command eval_command() {
  return {
      .name = "eval",
      .summary = "loss and perplexity of a model on rows, and with --generate its answers",
      .usage =
          "convoy eval CONFIG.yaml [key=value ...] [--split test|val] [--adapter D] [--generate]\n"
          "convoy eval --model D [--adapter D] --data F [--generate] [--nproc N]\n"
          "convoy eval --samples F.jsonl [--metrics M,..] [--report R.html]",
      .examples =
          "convoy eval run.yaml --adapter runs/sums/adapter --generate\n"
          "convoy eval --model models/tally-3m --data test.jsonl --output-dir results\n"
          "convoy eval --samples results/samples.jsonl --json",
      .flag_table = flag_tables<settings::EvalFlags, settings::MetricFlags, settings::SamplingFlags,
                                settings::EngineFlags, settings::ModelFlags, launch::DeviceFlags,
                                launch::HostRankFlags>,
      .run = run_eval};
}

Command score_command() {
  return {.name = "score",
          .summary = "negative log-likelihood of each row, with the masks of training",
          .usage =
              "convoy score --model D [--adapter D] --data F [--output O.jsonl] "
              "[--supervise assistant|last|all] [--nproc N]",
          .examples =
              "convoy score --model models/tally-3m --data rows.jsonl --output scores.jsonl\n"
              "convoy score --model models/tally-3m --adapter runs/sums/adapter --data chat.jsonl "
              "--supervise last",
          .flag_table = flag_tables<settings::ScoreFlags, settings::ModelFlags, launch::DeviceFlags,
                                    launch::HostRankFlags>,
          .run = run_score};
}

Command generate_command() {
  return {.name = "generate",
          .summary = "answers prompts",
          .usage =
              "convoy generate --model D [--adapter D] (--prompts F.jsonl | --prompt TEXT | "
              "--interactive) [--output O.jsonl] [--nproc N]",
          .examples =
              "convoy generate --model models/tally-3m --prompt $'Question: 12 + 7 = ?\\nAnswer:' "
              "--chat off --greedy\n"
              "convoy generate --model models/tally-3m --adapter runs/sums/adapter --prompts "
              "test.jsonl --output answers.jsonl --nproc 2\n"
              "convoy generate --model models/tally-3m --interactive --temperature 0.7",
          .flag_table =
              flag_tables<settings::GenerateFlags, settings::SamplingFlags, settings::EngineFlags,
                          settings::ModelFlags, launch::DeviceFlags, launch::HostRankFlags>,
          .run = run_generate};
}

Command merge_command() {
  return {.name = "merge",
          .summary = "adds a LoRA adapter to its model's weights",
          .usage =
              "convoy merge --model D --adapter D --output D [--dtype auto|fp32|bf16|fp16] "
              "[--base dequantized|full]",
          .examples =
              "convoy merge --model models/tally-3m --adapter runs/sums/adapter --output merged\n"
              "convoy merge --model models/tally-3m --adapter runs/sums/adapter --output merged "
              "--dtype bf16\n"
              "convoy merge --model models/tally-3m --adapter runs/qlora/adapter --output merged "
              "--quantization nf4 --base dequantized",
          .flag_table =
              flag_tables<settings::MergeFlags, settings::ModelSourceFlags, launch::DeviceFlags>,
          .run = run_merge};
}

Command bench_command() {
  return {
      .name = "bench",
      .summary = "times Convoy beside its peers, strategies beside each other, and the machine",
      .usage = "convoy bench train|generate|peak [flags]",
      .examples =
          "convoy bench train --mode lora --dtype bf16\n"
          "convoy bench generate --batches 1,8 --rounds 3\n"
          "convoy bench peak",
      .flag_table = nullptr,
      .run = run_bench,
      .actions = {
          {"train", "steps of a training", "convoy bench train [--nproc N] [--strategy S] [flags]",
           flag_tables<settings::BenchTrainFlags, settings::BenchFlags, launch::DeviceFlags,
                       launch::HostRankFlags>,
           "convoy bench train --mode lora --dtype bf16\n"
           "convoy bench train --mode full --geometry tiny --no-peer --json\n"
           "convoy bench train --mode full --nproc 2 --strategy zero3 --global-batch 8"},
          {"generate", "new tokens of rows together", "convoy bench generate [flags]",
           flag_tables<settings::BenchGenerateFlags, settings::BenchFlags, launch::DeviceFlags>,
           "convoy bench generate --batches 1,8 --rounds 3\n"
           "convoy bench generate --geometry tiny --no-peer --weights int8"},
          {"peak", "what the machine multiplies by type, as shares of a peak are counted against",
           "convoy bench peak [--devices cpu|cuda] [--threads N]", peak_flag_table,
           "convoy bench peak\nconvoy bench peak --devices cpu --threads 1 --json"}}};
}

}  // namespace convoy::apps
