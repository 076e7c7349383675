// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_train.h"

#include <algorithm>
#include <filesystem>

#include "convoy/apps/recipes/bench/bench_model.h"
#include "convoy/apps/recipes/bench/bench_record.h"
#include "convoy/apps/recipes/bench/bench_training.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/device/memory.h"

namespace convoy::recipes {
namespace {

// Number of micro-batches of a step on each rank.
int64_t accumulation(const settings::BenchTrainFlags& flags, int ranks) {
  const int64_t together = flags.batch * ranks;
  if (flags.global_batch == 0) return 1;
  if (flags.global_batch % together == 0) return flags.global_batch / together;
  throw ConfigError(
      fmt::format("a global batch of {} cannot be dealt to {} in "
                  "micro-batches of {}",
                  counted(flags.global_batch, "row"), counted(ranks, "rank"), flags.batch),
      {.key = "global_batch", .hint = fmt::format("give a multiple of {}", together)});
}

std::unique_ptr<nn::CausalLm> model_to_train(const settings::BenchFlags& common,
                                             const settings::BenchTrainFlags& flags,
                                             at::Device device, nn::DeferredValues* values) {
  auto model = bench_model(common, device, values);
  require_positions(*model, flags.seq, "seq");
  if (flags.mode != "qlora") return model;
  if (values != nullptr)
    throw ConfigError("the benchmark of qlora shares no parameters",
                      {.key = "strategy", .hint = "take ddp, zero1 or zero2"});
  code_linears(*model, kQloraFormat);
  return model;
}

// FLOPs of the products of a step: forward, input gradient and, for trained weights, weight
// gradient. Causal attention covers half of the row on average; its backward costs twice its
// forward.
double flops_per_token(const nn::CausalLm& model, const settings::BenchTrainFlags& flags) {
  const double products_of_weights = flags.mode == "full" ? 3 : 2;
  const double attention = 3.0 * 2.0 * static_cast<double>(flags.seq) *
                           static_cast<double>(model.attention_width() * model.num_layers());
  return products_of_weights * 2.0 * static_cast<double>(model.matmul_parameters()) + attention;
}

BenchRecord run_steps(BenchTraining& training, const settings::BenchFlags& common,
                      const settings::BenchTrainFlags& flags, const BenchTrainingConfig& config,
                      RankShare& share) {
  BenchRecord record;
  record.geometry = common.geometry;
  record.strategy = settings::strategy_for(config.strategy, share.size()).name;
  record.device_kind = at::DeviceTypeName(share.rank_device().device.type(), true);
  record.ranks = share.size();
  record.batch = flags.batch;
  record.grad_accum = config.grad_accum;
  record.row_tokens = flags.seq;
  record.total_parameters = nn::count_parameters(training.model());
  record.trained_parameters = training.trained_parameters();
  record.planned_bytes = training.planned_bytes();
  for (int64_t number = 0; number <= flags.steps; ++number) record.steps.push_back(training.step());
  return record;
}

}  // namespace

nlohmann::ordered_json bench_train(const settings::BenchFlags& common,
                                   const settings::BenchTrainFlags& flags,
                                   const settings::RankFlags& ranks, const Log& log) {
  RankShare share(ranks);
  const BenchTrainingConfig config{
      .mode = flags.mode,
      .strategy = flags.strategy,
      .row_tokens = flags.seq,
      .batch_rows = flags.batch,
      .grad_accum = accumulation(flags, share.size()),
      .recompute = flags.recompute ? nn::Recompute::Blocks : nn::Recompute::Nothing};
  settings::ParallelSettings parallel;
  parallel.strategy = settings::strategy_for(flags.strategy, share.size()).name;
  nn::DeferredValues values;
  nn::DeferredValues* const deferred = parallel::shards_values(parallel) ? &values : nullptr;
  BenchTraining training(config,
                         model_to_train(common, flags, share.rank_device().device, deferred),
                         share.group(), log, deferred);
  const BenchRecord record = run_steps(training, common, flags, config, share);
  const double flops = flops_per_token(training.model(), flags);
  share.finish();
  if (!share.leads()) return {};
  if (!flags.output_dir.empty())
    write_file_atomic(std::filesystem::path(flags.output_dir) /
                          fmt::format("train_convoy_{}.json", common.geometry),
                      benchmark_file(record).dump(2) + "\n");
  const std::vector<double> seconds = record.step_seconds();
  const auto tokens = static_cast<double>(record.step_tokens());
  nlohmann::ordered_json result = {{"tool", "convoy"},
                                   {"mode", flags.mode},
                                   {"dtype", common.dtype},
                                   {"geometry", common.geometry},
                                   {"seq", flags.seq},
                                   {"batch", flags.batch},
                                   {"global_batch", record.global_batch()},
                                   {"grad_accum", record.grad_accum},
                                   {"ranks", record.ranks},
                                   {"strategy", record.strategy},
                                   {"recompute", flags.recompute},
                                   {"tokens_per_s", tokens / seconds[seconds.size() / 2]},
                                   {"best", tokens / seconds.front()},
                                   {"communication_share", record.communication_share()},
                                   {"flops_per_token", flops},
                                   {"loss", record.steps.back().loss}};
  int64_t peak_bytes = 0;
  for (const BenchStep& step : record.steps) peak_bytes = std::max(peak_bytes, step.memory_bytes);
  result["planned_mb"] = record.planned_bytes >> 20;
  const bool on_cpu = share.rank_device().device.is_cpu();
  if (!on_cpu) result["peak_device_mb"] = peak_bytes >> 20;
  result["peak_rss_mb"] =
      (on_cpu ? peak_bytes : device::process_memory().peak_resident_bytes) >> 20;
  return result;
}

}  // namespace convoy::recipes
