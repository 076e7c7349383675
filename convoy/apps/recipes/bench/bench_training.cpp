// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_training.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "convoy/apps/recipes/memory/memory_plan.h"
#include "convoy/apps/recipes/training/attention_choice.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/machine/device/memory.h"
#include "convoy/model/nn/head_loss.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/loop/labelled_batch.h"
#include "convoy/train/optim/clip.h"
#include "convoy/train/parallel/trained_parameters.h"

namespace convoy::recipes {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLearningRate = 1e-4;

// A rank's data about a step, for the other ranks.
struct RankStep {
  double loss = 0;  // the rank's part of the loss
  double squares = 0;
  double wait_seconds = 0;
  double memory_bytes = 0;
};

}  // namespace

BenchTraining::BenchTraining(const BenchTrainingConfig& config, std::unique_ptr<nn::CausalLm> model,
                             comm::Group& group, const Log& log, const nn::DeferredValues* values)
    : config_(config), group_(group), model_(std::move(model)) {
  choose_attention(*model_, config.attention, "attention");
  choose_parameters(values);
  settings::ParallelSettings parallel;
  const sizing::MemoryQuestion question = memory_question(parallel);
  parallel.strategy = strategy_name_ = strategy_of(question);
  const sizing::MemoryPlan planned =
      plan_memory(question, sizing::sharing_of(settings::strategy_named(strategy_name_)));
  planned_bytes_ = planned.total_bytes();
  if (group.rank() == 0) log.info(fmt::format("memory of a rank: {}", planned.text()));
  strategy_ = parallel::make_strategy(parallel, group);
  optimizer_.emplace(optim::AdamWConfig{.weight_decay = 0.01, .states = config.states},
                     parallel::prepare_parameters(*strategy_, *model_, parameters_, values));
  rows_ = random_rows();
}

void BenchTraining::choose_parameters(const nn::DeferredValues* values) {
  if (config_.mode == "full") {
    model_->set_requires_grad(true);
    parameters_ = model_->parameters();
    return;
  }
  const nn::DeferredValues none;
  nn::ReadOnUse reading(model_->units(), values != nullptr ? *values : none);
  model_->set_residency(&reading);
  adapters::LoraConfig config;
  config.r = 16;
  config.alpha = 32;
  config.use_dora = config_.mode == "dora";
  lora_ = adapters::LoraModel::create(*model_, config, 0);
  model_->set_residency(nullptr);
  parameters_ = lora_->parameters();
}

sizing::MemoryQuestion BenchTraining::memory_question(const settings::ParallelSettings& parallel) {
  return {.shape = training_shape(*model_),
          .ranks = group_.size(),
          .keep_whole_below = parallel.keep_whole_below,
          .accumulates = config_.grad_accum > 1,
          .micro_batch_tokens = config_.batch_rows * config_.row_tokens,
          .recompute = config_.recompute,
          .moment_bytes_of_256 = optim::state_bytes(config_.states, 256 * 256, false).moments / 256,
          .has_masters = config_.states.has_masters,
          .program_bytes = memory_beside(*model_)};
}

std::string BenchTraining::strategy_of(const sizing::MemoryQuestion& question) const {
  if (config_.strategy != "auto" || config_.device_bytes == 0)
    return std::string(settings::strategy_for(config_.strategy, group_.size()).name);
  return sizing::choose_strategy(question, sizing::sharings_of(settings::strategies_of_processes()),
                                 config_.device_bytes)
      .strategy;
}

// Rows of the whole global batch, equal on every rank.
data::TokenDataset BenchTraining::random_rows() const {
  at::Generator generator = at::detail::createCPUGenerator(1);
  std::vector<data::EncodedRow> rows(
      static_cast<size_t>(config_.batch_rows * config_.grad_accum * group_.size()));
  for (data::EncodedRow& row : rows) {
    const at::Tensor ids =
        at::randint(model_->vocab_size(), {config_.row_tokens}, generator, at::kInt);
    row.ids.assign(ids.const_data_ptr<int32_t>(),
                   ids.const_data_ptr<int32_t>() + config_.row_tokens);
    row.supervised.assign(row.ids.size(), 1);
    row.supervised[0] = 0;
  }
  return data::TokenDataset::from_rows(rows);
}

int64_t BenchTraining::trained_parameters() const {
  int64_t count = 0;
  for (const nn::NamedTensor& parameter : parameters_) count += parameter.value.numel();
  return count;
}

void BenchTraining::accumulate(int64_t micro, at::Tensor& loss) {
  const auto tokens = static_cast<double>(rows_.num_rows() * (config_.row_tokens - 1));
  std::vector<int64_t> rows(static_cast<size_t>(config_.batch_rows));
  std::iota(rows.begin(), rows.end(), (micro * group_.size() + group_.rank()) * config_.batch_rows);
  const train::LabelledBatch batch = train::assemble_batch(rows_, rows, model_->device());
  strategy_->begin_micro_batch(micro + 1 == config_.grad_accum ? parallel::MicroBatch::Last
                                                               : parallel::MicroBatch::More);
  const at::Tensor hidden_TD =
      model_->hidden_states(batch.tokens, {.recompute = config_.recompute});
  const at::Tensor nll = nn::head_loss(*model_, hidden_TD, batch.labels).div(tokens);
  nll.backward();
  loss.add_(nll.detach());
}

BenchStep BenchTraining::step() {
  const Clock::time_point start = Clock::now();
  const double waited_before = group_.waited_seconds();
  device::reset_peak_memory();
  const at::Device device = model_->device();
  at::Tensor loss = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device));
  for (int64_t micro = 0; micro < config_.grad_accum; ++micro) accumulate(micro, loss);
  strategy_->finish_gradients();
  RankStep own;
  const double norm = optim::global_norm(parallel::gradients_of(strategy_->shards()));
  own.squares = norm * norm;
  own.loss = loss.item<double>();
  own.memory_bytes = static_cast<double>(device::rank_memory(device).peak_bytes);
  own.wait_seconds = group_.waited_seconds() - waited_before;
  BenchStep all{.learning_rate = kLearningRate};
  double squares = 0;
  for (const RankStep& rank : comm::exchange(group_, own)) {
    all.loss += rank.loss;
    squares += rank.squares / strategy_->num_owners();
    all.wait_seconds += rank.wait_seconds / group_.size();
    all.memory_bytes = std::max(all.memory_bytes, static_cast<int64_t>(rank.memory_bytes));
  }
  optimizer_->step(kLearningRate, optim::clip_coefficient(std::sqrt(squares), 1.0));
  strategy_->finish_step();
  all.seconds = seconds_since(start);
  return all;
}

}  // namespace convoy::recipes
