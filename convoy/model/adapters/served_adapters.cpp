// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/adapters/served_adapters.h"

#include <algorithm>
#include <map>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/model/adapters/lora_model.h"

namespace convoy::adapters {
namespace {

using Runs = std::vector<AdapterTokens>;

// The adapters of one linear map: null where an adapter leaves it unchanged.
class MixedAdapter final : public nn::LinearAdapter {
 public:
  MixedAdapter(std::vector<std::shared_ptr<const LoraLinear>> of_adapter,
               std::shared_ptr<const Runs> runs)
      : of_adapter_(std::move(of_adapter)), runs_(std::move(runs)) {}

  at::Tensor forward(const nn::Linear& base, const at::Tensor& x,
                     nn::DrawKey draw_key) const override {
    if (runs_->size() == 1) return through(runs_->front().adapter, base, x, draw_key);
    std::vector<at::Tensor> parts;
    int64_t begin = 0;
    for (const AdapterTokens& run : *runs_) {
      parts.push_back(through(run.adapter, base, x.narrow(0, begin, run.tokens), draw_key));
      begin += run.tokens;
    }
    check_tokens(begin, x);
    return at::cat(parts);
  }
  bool adds() const override {
    return std::all_of(of_adapter_.begin(), of_adapter_.end(),
                       [](const auto& lora) { return lora == nullptr || lora->adds(); });
  }
  void add_to(const at::Tensor& y_TO, const at::Tensor& x_TI) const override {
    int64_t begin = 0;
    for (const AdapterTokens& run : *runs_) {
      const int64_t tokens = runs_->size() == 1 ? x_TI.size(0) : run.tokens;
      if (const LoraLinear* const lora = lora_of(run.adapter))
        lora->add_to(y_TO.narrow(0, begin, tokens), x_TI.narrow(0, begin, tokens));
      begin += tokens;
    }
    check_tokens(begin, x_TI);
  }
  bool trains() const override { return false; }

 private:
  static void check_tokens(int64_t tokens, const at::Tensor& x) {
    CONVOY_INVARIANT(tokens == x.size(0), "adapters are set for {} tokens, the pass has {}", tokens,
                     x.size(0));
  }
  // Null: the map is not changed.
  const LoraLinear* lora_of(int64_t adapter) const {
    return adapter == 0 ? nullptr : of_adapter_.at(static_cast<size_t>(adapter - 1)).get();
  }
  at::Tensor through(int64_t adapter, const nn::Linear& base, const at::Tensor& x,
                     nn::DrawKey draw_key) const {
    const LoraLinear* const lora = lora_of(adapter);
    return lora == nullptr ? base.base_forward(x) : lora->forward(base, x, draw_key);
  }

  std::vector<std::shared_ptr<const LoraLinear>> of_adapter_;
  std::shared_ptr<const Runs> runs_;
};

void refuse_whole_modules(const LoraModel& adapter, const std::string& folder) {
  if (adapter.config().modules_to_save.empty() && !adapter.brings_embeddings()) return;
  throw ConfigError(
      "an adapter with modules_to_save or embeddings cannot be served beside others",
      {.file = folder, .key = "modules_to_save", .hint = "merge it into a model of its own"});
}

void detach(const LoraModel& adapter) {
  for (const LoraModel::Adapted& adapted : adapter.adapted()) adapted.linear->set_adapter(nullptr);
}

}  // namespace

ServedAdapters::ServedAdapters(nn::CausalLm& model,
                               const std::vector<std::filesystem::path>& folders)
    : model_(model),
      num_adapters_(static_cast<int64_t>(folders.size())),
      runs_(std::make_shared<Runs>(1)) {
  std::vector<LoraModel> loaded;
  std::vector<const LoraModel*> adapters;
  for (const std::filesystem::path& folder : folders) {
    loaded.push_back(LoraModel::load(model, folder));
    refuse_whole_modules(loaded.back(), folder.string());
    detach(loaded.back());
  }
  for (const LoraModel& adapter : loaded) adapters.push_back(&adapter);
  mix(adapters);
}

ServedAdapters::ServedAdapters(nn::CausalLm& model, const LoraModel& attached)
    : model_(model), num_adapters_(1), runs_(std::make_shared<Runs>(1)) {
  refuse_whole_modules(attached, {});
  detach(attached);
  mix({&attached});
}

void ServedAdapters::mix(const std::vector<const LoraModel*>& adapters) {
  std::map<nn::Linear*, std::vector<std::shared_ptr<const LoraLinear>>> of_linear;
  for (size_t adapter = 0; adapter < adapters.size(); ++adapter) {
    for (const LoraModel::Adapted& adapted : adapters[adapter]->adapted()) {
      of_linear[adapted.linear].resize(adapters.size());
      of_linear[adapted.linear][adapter] = adapted.lora;
    }
  }
  for (auto& [linear, of_adapter] : of_linear)
    linear->set_adapter(std::make_shared<MixedAdapter>(std::move(of_adapter), runs_));
}

ServedAdapters::~ServedAdapters() {
  for (nn::Linear* linear : model_.block_linears()) linear->set_adapter(nullptr);
}

void ServedAdapters::set_tokens(const std::vector<AdapterTokens>& tokens) {
  runs_->clear();
  for (const AdapterTokens& each : tokens) {
    if (!runs_->empty() && runs_->back().adapter == each.adapter)
      runs_->back().tokens += each.tokens;
    else
      runs_->push_back(each);
  }
}

}  // namespace convoy::adapters
