// SPDX-License-Identifier: Apache-2.0
//
// The training that `convoy bench train` times and `convoy bench predict --train` counts: one
// rank's model, strategy, optimizer and random rows, and a step of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/apps/recipes/bench/bench_record.h"
#include "convoy/core/base/log.h"
#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/deferred_values.h"
#include "convoy/model/sizing/memory_plan.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::recipes {

// The format of the frozen weights in mode qlora.
inline constexpr kernels::BitsandbytesFormat kQloraFormat{
    .type = kernels::CodeType::Nf4, .block = 64, .nested = true};

struct BenchTrainingConfig {
  std::string mode = "lora";  // lora, qlora, dora, full
  std::string strategy = "none";
  int64_t row_tokens = 0;
  int64_t batch_rows = 1;  // rows of a micro-batch
  int64_t grad_accum = 1;
  nn::Recompute recompute = nn::Recompute::Nothing;
  std::string attention = "flash";  // flash or cudnn
  optim::StateFormat states = {};
  // With strategy auto, the first strategy that fits into this memory is taken, as in training; 0 =
  // ddp.
  int64_t device_bytes = 0;
};

class BenchTraining {
 public:
  // `model`: in mode qlora its weights are in kQloraFormat. `values`: the model's values if it was
  // created without them, for a strategy that shards them. Logs the planned memory. Collective.
  // Throws ConfigError.
  BenchTraining(const BenchTrainingConfig& config, std::unique_ptr<nn::CausalLm> model,
                comm::Group& group, const Log& log, const nn::DeferredValues* values = nullptr);
  BenchTraining(const BenchTraining&) = delete;
  BenchTraining& operator=(const BenchTraining&) = delete;

  // One training step: forward and backward of all micro-batches, gradient norm, optimizer.
  // Collective.
  BenchStep step();

  nn::CausalLm& model() { return *model_; }
  const adapters::LoraModel* lora() const { return lora_ ? &*lora_ : nullptr; }
  int64_t trained_parameters() const;
  int64_t planned_bytes() const { return planned_bytes_; }  // for one rank
  const std::string& strategy_name() const { return strategy_name_; }

 private:
  void choose_parameters(const nn::DeferredValues* values);
  sizing::MemoryQuestion memory_question(const settings::ParallelSettings& parallel);
  std::string strategy_of(const sizing::MemoryQuestion& question) const;
  data::TokenDataset random_rows() const;
  void accumulate(int64_t micro, at::Tensor& loss);

  BenchTrainingConfig config_;
  comm::Group& group_;
  std::unique_ptr<nn::CausalLm> model_;
  std::optional<adapters::LoraModel> lora_;
  std::vector<nn::NamedTensor> parameters_;
  std::unique_ptr<parallel::Strategy> strategy_;
  std::optional<optim::AdamW> optimizer_;
  data::TokenDataset rows_;
  int64_t planned_bytes_ = 0;
  std::string strategy_name_;
};

}  // namespace convoy::recipes
