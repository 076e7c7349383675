// SPDX-License-Identifier: Apache-2.0
//
// Takes the adapter of a model off for the lifetime of an object: the base without it is left. One
// thread.
#pragma once

#include <memory>
#include <vector>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/model/nn/linear.h"

namespace convoy::recipes {

class WithoutAdapter {
 public:
  // `loaded` has an adapter and outlives it.
  explicit WithoutAdapter(const LoadedModel& loaded) {
    for (const adapters::LoraModel::Adapted& adapted : loaded.lora->adapted()) {
      taken_.push_back({adapted.linear, adapted.lora, adapted.linear->adapter_leaves()});
      adapted.linear->set_adapter(nullptr);
    }
  }
  ~WithoutAdapter() {
    for (const Taken& taken : taken_) taken.linear->set_adapter(taken.lora, taken.leaves);
  }
  WithoutAdapter(const WithoutAdapter&) = delete;
  WithoutAdapter& operator=(const WithoutAdapter&) = delete;

 private:
  struct Taken {
    nn::Linear* linear;
    std::shared_ptr<const nn::LinearAdapter> lora;
    std::vector<nn::NamedTensor> leaves;
  };
  std::vector<Taken> taken_;
};

}  // namespace convoy::recipes
