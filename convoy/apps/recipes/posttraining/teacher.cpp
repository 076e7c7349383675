// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/posttraining/teacher.h"

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/io/model_fingerprint.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/kernels/cross_entropy/linear_cross_entropy.h"

namespace convoy::recipes {
namespace {

constexpr const char* kKey = "distill.teacher";

// A model is compared with its teacher token by token, so an id must mean the same to both.
// Merges and rules may differ: the teacher reads the ids that the model drew.
void require_tokens(const settings::TrainSettings& settings, const text::Tokenizer& own,
                    const text::Tokenizer& teacher) {
  if (own.content_hash() == teacher.content_hash()) return;
  const auto refuse = [&](const std::string& difference) {
    throw ConfigError(
        fmt::format("{} has other tokens than {}: {}", settings.distill.teacher,
                    settings.model.name, difference),
        {.key = kKey, .hint = "take a teacher of the model's own family, with its tokenizer"});
  };
  if (teacher.vocab_size() < own.vocab_size())
    refuse(fmt::format("it has {} of them, the model {}; `{}` is missing", teacher.vocab_size(),
                       own.vocab_size(), own.piece(static_cast<int32_t>(teacher.vocab_size()))));
  for (int32_t id = 0; id < own.vocab_size(); ++id)
    if (const std::string here = own.piece(id), there = teacher.piece(id); here != there)
      refuse(fmt::format("token {} is `{}`, here `{}`", id, there, here));
}

int64_t bytes_in_memory(const io::TensorView& tensor, int64_t element_bytes) {
  switch (tensor.dtype) {
    case io::Dtype::F32:
    case io::Dtype::F16:
    case io::Dtype::BF16:
      return tensor.num_elements() * element_bytes;
    default:
      return static_cast<int64_t>(tensor.bytes.size());
  }
}

// Tensors of the size of a chunk's logits that the loss holds at its peak.
constexpr int64_t kTensorsOfLoss = 9;

}  // namespace

void require_teacher(const settings::TrainSettings& settings, const LoadedModel& base,
                     int64_t longest_row_tokens) {
  const io::ModelFolder folder = io::folder_of_weights(settings.distill.teacher);
  require_tokens(settings, base.tokenizer,
                 text::Tokenizer::load(folder.path(), settings.data.eos_token));
  const int64_t positions = families::read_decoder_spec(folder).max_positions;
  if (longest_row_tokens > positions)
    throw ConfigError(
        fmt::format("{} has {} positions, and a problem with its text takes up to {} tokens",
                    settings.distill.teacher, positions, longest_row_tokens),
        {.key = kKey, .hint = "lower rollout.max_new_tokens, or take another teacher"});
}

LoadedModel load_teacher(const TrainingRun& run) {
  return load_model({.name = run.settings.distill.teacher,
                     .dtype = run.dtype,
                     .eos_token = run.settings.data.eos_token,
                     .device = run.rank_device.device},
                    run.log);
}

int64_t bytes_of_teacher(const settings::DistillSettings& distill, int64_t element_bytes) {
  const io::ModelWeights weights(io::folder_of_weights(distill.teacher));
  int64_t bytes = 0;
  for (const std::string& name : weights.names())
    bytes += bytes_in_memory(weights.require(name), element_bytes);
  return bytes;
}

int64_t bytes_of_teacher_loss(int64_t vocab_size, int64_t micro_batch_tokens) {
  const int64_t rows = std::min(micro_batch_tokens, kernels::rows_of_logit_loss(vocab_size));
  return kTensorsOfLoss * rows * vocab_size * static_cast<int64_t>(sizeof(float));
}

std::string teacher_fingerprint(const settings::DistillSettings& distill) {
  if (distill.is_served()) return "served " + distill.teacher;
  return io::fingerprint_of_named(distill.teacher);
}

}  // namespace convoy::recipes
