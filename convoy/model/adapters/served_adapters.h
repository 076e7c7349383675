// SPDX-License-Identifier: Apache-2.0
//
// Several LoRA adapters of one model at once: each token of a pass uses one adapter or none.
// Nothing is merged. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "convoy/model/nn/causal_lm.h"

namespace convoy::adapters {

class LoraModel;

struct AdapterTokens {
  int64_t adapter = 0;  // 0 = none, else the position of its folder, from 1
  int64_t tokens = 0;
};

class ServedAdapters {
 public:
  // `folders`: what LoraModel::load takes. The model must outlive this object, and gets no other
  // adapter. Throws DataError; ConfigError for an adapter with modules that were trained whole,
  // which would change every token.
  ServedAdapters(nn::CausalLm& model, const std::vector<std::filesystem::path>& folders);
  // Takes over an adapter that is attached to the model, under the same conditions.
  ServedAdapters(nn::CausalLm& model, const LoraModel& attached);
  ~ServedAdapters();  // the model is without adapters again
  ServedAdapters(const ServedAdapters&) = delete;
  ServedAdapters& operator=(const ServedAdapters&) = delete;

  int64_t size() const { return num_adapters_; }
  // Sets the adapters of the tokens of the next passes, in the order of the batch. A run of tokens
  // with one adapter reads the adapter's weights once.
  void set_tokens(const std::vector<AdapterTokens>& tokens);

 private:
  // Attaches the mixture of `adapters`, which were detached from the model.
  void mix(const std::vector<const LoraModel*>& adapters);

  nn::CausalLm& model_;
  int64_t num_adapters_;
  std::shared_ptr<std::vector<AdapterTokens>> runs_;
};

}  // namespace convoy::adapters
