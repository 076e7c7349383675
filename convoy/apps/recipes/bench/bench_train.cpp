// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_train.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>

#include "convoy/apps/recipes/bench/bench_model.h"
#include "convoy/apps/recipes/bench/bench_record.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/memory_plan.h"
#include "convoy/apps/recipes/rank_share.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/device/memory.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/nn/head_loss.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/loop/token_batch.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/optim/clip.h"
#include "convoy/train/parallel/strategy.h"
#include "convoy/train/parallel/trained_parameters.h"

namespace convoy::recipes {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLearningRate = 1e-4;

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

// One rank's share of the benchmark.
class BenchTrain {
 public:
  BenchTrain(const settings::BenchFlags& common, const settings::BenchTrainFlags& flags,
             RankShare& share, const Log& log);

  const BenchRecord& run();
  double flops_per_token() const;

 private:
  void choose_parameters();
  void quantize_weights();
  data::TokenDataset random_rows() const;
  BenchStep step();

  const settings::BenchFlags& common_;
  const settings::BenchTrainFlags& flags_;
  RankShare& share_;
  const int64_t grad_accum_;
  nn::DeferredValues values_;
  std::unique_ptr<nn::CausalLm> model_;
  std::optional<adapters::LoraModel> lora_;
  std::vector<nn::NamedTensor> parameters_;
  std::unique_ptr<parallel::Strategy> strategy_;
  std::optional<optim::AdamW> optimizer_;
  data::TokenDataset rows_;
  BenchRecord record_;
};

BenchTrain::BenchTrain(const settings::BenchFlags& common, const settings::BenchTrainFlags& flags,
                       RankShare& share, const Log& log)
    : common_(common),
      flags_(flags),
      share_(share),
      grad_accum_(accumulation(flags, share.size())) {
  settings::ParallelSettings parallel;
  const settings::StrategyFacts& facts = settings::strategy_for(flags.strategy, share.size());
  parallel.strategy = facts.name;
  const bool deferred = parallel::shards_values(parallel);
  model_ = bench_model(common, share.rank_device().device, deferred ? &values_ : nullptr);
  require_positions(*model_, flags.seq, "seq");
  choose_parameters();
  const sizing::MemoryQuestion question{.shape = training_shape(*model_),
                                        .ranks = share.size(),
                                        .keep_whole_below = parallel.keep_whole_below,
                                        .accumulates = grad_accum_ > 1,
                                        .micro_batch_tokens = flags.batch * flags.seq,
                                        .recompute_blocks = flags.recompute,
                                        .program_bytes = memory_beside(*model_)};
  record_.strategy = parallel.strategy;
  const sizing::MemoryPlan plan = plan_memory(question, sizing::sharing_of(facts));
  record_.planned_bytes = plan.total_bytes();
  if (share.leads()) log.info(fmt::format("memory of a rank: {}", plan.text()));
  strategy_ = parallel::make_strategy(parallel, share.group());
  optimizer_.emplace(optim::AdamWConfig{.weight_decay = 0.01},
                     parallel::prepare_parameters(*strategy_, *model_, parameters_,
                                                  deferred ? &values_ : nullptr));
  rows_ = random_rows();
}

void BenchTrain::choose_parameters() {
  if (flags_.mode == "full") {
    model_->set_requires_grad(true);
    parameters_ = model_->parameters();
    return;
  }
  if (flags_.mode == "qlora") quantize_weights();
  nn::ReadOnUse reading(model_->units(), values_);
  model_->set_residency(&reading);
  adapters::LoraConfig config;
  config.r = 16;
  config.alpha = 32;
  config.use_dora = flags_.mode == "dora";
  lora_ = adapters::LoraModel::create(*model_, config, 0);
  model_->set_residency(nullptr);
  parameters_ = lora_->parameters();
}

void BenchTrain::quantize_weights() {
  const kernels::BitsandbytesFormat format{
      .type = kernels::CodeType::Nf4, .block = 64, .nested = true};
  for (const nn::Linear* linear : model_->block_linears())
    if (values_.contains(linear->weight()))
      throw ConfigError("the benchmark of qlora shares no parameters",
                        {.key = "strategy", .hint = "take ddp, zero1 or zero2"});
  code_linears(*model_, format);
}

// Rows of the whole global batch, equal on every rank.
data::TokenDataset BenchTrain::random_rows() const {
  at::manual_seed(1);
  std::vector<data::EncodedRow> rows(
      static_cast<size_t>(flags_.batch * grad_accum_ * share_.size()));
  for (data::EncodedRow& row : rows) {
    const at::Tensor ids = at::randint(model_->vocab_size(), {flags_.seq}, at::kInt);
    row.ids.assign(ids.const_data_ptr<int32_t>(), ids.const_data_ptr<int32_t>() + flags_.seq);
    row.supervised.assign(row.ids.size(), 1);
    row.supervised[0] = 0;
  }
  return data::TokenDataset::from_rows(rows);
}

// FLOPs of the products of a step: forward, input gradient and, for trained weights, weight
// gradient. Causal attention covers half of the row on average; its backward costs twice its
// forward.
double BenchTrain::flops_per_token() const {
  const double products_of_weights = flags_.mode == "full" ? 3 : 2;
  const double attention = 3.0 * 2.0 * static_cast<double>(flags_.seq) *
                           static_cast<double>(model_->attention_width() * model_->num_layers());
  return products_of_weights * 2.0 * static_cast<double>(model_->matmul_parameters()) + attention;
}

// A rank's data about a step, for the other ranks.
struct RankStep {
  double loss = 0;  // its part
  double squares = 0;
  double wait_seconds = 0;
  double memory_bytes = 0;
};

BenchStep BenchTrain::step() {
  const Clock::time_point start = Clock::now();
  const double waited_before = share_.group().waited_seconds();
  device::reset_peak_memory();
  const at::Device device = share_.rank_device().device;
  const auto tokens = static_cast<double>(rows_.num_rows() * (flags_.seq - 1));
  at::Tensor loss = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device));
  for (int64_t micro = 0; micro < grad_accum_; ++micro) {
    std::vector<int64_t> rows(static_cast<size_t>(flags_.batch));
    std::iota(rows.begin(), rows.end(), (micro * share_.size() + share_.rank()) * flags_.batch);
    const train::LabelledBatch batch = train::assemble_batch(rows_, rows, device);
    strategy_->begin_micro_batch(micro + 1 == grad_accum_ ? parallel::MicroBatch::Last
                                                          : parallel::MicroBatch::More);
    const at::Tensor hidden_TD =
        model_->hidden_states(batch.tokens, {.recompute_blocks = flags_.recompute});
    const at::Tensor nll = nn::head_loss(*model_, hidden_TD, batch.labels).div(tokens);
    nll.backward();
    loss.add_(nll.detach());
  }
  strategy_->finish_gradients();
  RankStep own;
  const double norm = optim::global_norm(parallel::gradients_of(strategy_->shards()));
  own.squares = norm * norm;
  own.loss = loss.item<double>();
  own.memory_bytes = static_cast<double>(device::rank_memory(device).peak_bytes);
  own.wait_seconds = share_.group().waited_seconds() - waited_before;
  BenchStep all{.learning_rate = kLearningRate};
  double squares = 0;
  for (const RankStep& rank : comm::exchange(share_.group(), own)) {
    all.loss += rank.loss;
    squares += rank.squares / strategy_->num_owners();
    all.wait_seconds += rank.wait_seconds / share_.size();
    all.memory_bytes = std::max(all.memory_bytes, static_cast<int64_t>(rank.memory_bytes));
  }
  optimizer_->step(kLearningRate, optim::clip_coefficient(std::sqrt(squares), 1.0));
  strategy_->finish_step();
  all.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return all;
}

const BenchRecord& BenchTrain::run() {
  record_.geometry = common_.geometry;
  record_.device_kind = at::DeviceTypeName(share_.rank_device().device.type(), true);
  record_.ranks = share_.size();
  record_.batch = flags_.batch;
  record_.grad_accum = grad_accum_;
  record_.row_tokens = flags_.seq;
  record_.total_parameters = nn::count_parameters(*model_);
  for (const nn::NamedTensor& parameter : parameters_)
    record_.trained_parameters += parameter.value.numel();
  for (int64_t number = 0; number <= flags_.steps; ++number) record_.steps.push_back(step());
  return record_;
}

}  // namespace

nlohmann::ordered_json bench_train(const settings::BenchFlags& common,
                                   const settings::BenchTrainFlags& flags,
                                   const settings::RankFlags& ranks, const Log& log) {
  RankShare share(ranks);
  BenchTrain bench(common, flags, share, log);
  const BenchRecord& record = bench.run();
  const double flops = bench.flops_per_token();
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
