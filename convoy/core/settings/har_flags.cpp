// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/har_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace convoy::settings {

std::vector<std::string> HarFlags::settings() const {
  const std::pair<const char*, const std::string&> texts[] = {
      {"parallel.strategy", multi_gpu},
      {"classify.pooling", mode},
      {"classify.data_dir", data_dir},
      {"classify.encoder_path", encoder_path},
      {"train.epochs", epochs},
      {"train.batch_size", batch_size},
      {"train.learning_rate", lr},
      {"train.weight_decay", weight_decay},
      {"train.warmup_epochs", warmup_epochs},
      {"classify.dropout", dropout},
      {"train.grad_accum", grad_accum_steps},
      {"train.max_grad_norm", max_grad_norm},
      {"classify.num_workers", num_workers},
      {"train.early_stopping_patience", early_stopping_patience},
      {"train.output_dir", save_dir},
      {"train.logging_steps", log_interval}};
  std::vector<std::string> words;
  for (const auto& [key, text] : texts)
    if (!text.empty()) words.push_back(fmt::format("{}={}", key, text));
  if (freeze_encoder) words.emplace_back("classify.freeze_encoder=true");
  if (no_freeze_encoder) words.emplace_back("classify.freeze_encoder=false");
  if (!hidden_dims.empty())
    words.push_back(fmt::format("classify.hidden_dims=[{}]", fmt::join(hidden_dims, ", ")));
  if (!amp) words.emplace_back("train.bf16=false");
  return words;
}

}  // namespace convoy::settings
