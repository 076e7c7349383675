// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/attention_choice.h"

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/attention/attention_cudnn.h"
#include "convoy/model/nn/kv_cache.h"

namespace convoy::recipes {
namespace {

// Returns the reason why cuDNN's attention does not take the model; empty when it does.
std::string against_cudnn(const nn::CausalLm& model) {
  const nn::KvGeometry geometry = model.kv_geometry();
  if (model.device().is_cpu()) return "this is a CPU";
  if (geometry.options.dtype() != at::kBFloat16) return "the training does not compute in bf16";
  for (const nn::KvLayerGroup& group : nn::layer_groups(geometry))
    if (group.heads.head_dim % 8 != 0 || group.heads.head_dim > kernels::kWidestCudnnHead)
      return fmt::format("the model has heads of {} features", group.heads.head_dim);
  const bool has_window = std::any_of(geometry.windows.begin(), geometry.windows.end(),
                                      [](int64_t window) { return window > 0; });
  return has_window ? "the model has layers with a sliding window" : "";
}

}  // namespace

void choose_attention(nn::CausalLm& model, const std::string& attention, const char* key) {
  if (attention != "cudnn") return;
  if (const std::string reason = against_cudnn(model); !reason.empty())
    throw ConfigError(
        fmt::format("cuDNN's attention takes bf16 on a GPU, heads of up to {} features in "
                    "multiples of 8 and no sliding window, and {}",
                    kernels::kWidestCudnnHead, reason),
        {.key = key, .hint = "take flash, or leave it out"});
  model.use_attention(kernels::AttentionKernel::Cudnn);
}

}  // namespace convoy::recipes
