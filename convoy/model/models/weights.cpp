// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/stored_tensor.h"

namespace convoy::models {
namespace {

constexpr size_t kMostNamesListed = 12;

bool is_computed(const std::string& name) { return name.ends_with(".rotary_emb.inv_freq"); }

// The model's own name of a tensor in the files; "" for a tensor of another part of the checkpoint.
std::string own_name(const std::string& name, families::TextModel layout) {
  // Qwen's head that predicts further tokens, which transformers leaves out too.
  if (name.starts_with("mtp.")) return "";
  if (layout == families::TextModel::Whole) return name;
  for (const std::string_view other :
       {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
        "model.multi_modal_projector.", "visual.", "model.visual.", "audio_tower.", "embed_vision.",
        "embed_audio.", "vision_embedder.", "model.audio_tower.", "model.embed_vision.",
        "model.embed_audio.", "model.vision_embedder.", "model.vision_adapter.",
        "model.vision_projection."}) {
    if (name.starts_with(other)) return "";
  }
  constexpr std::string_view kOuter = "language_model.";
  constexpr std::string_view kInner = "model.language_model.";
  if (name.starts_with(kOuter)) return name.substr(kOuter.size());
  if (name.starts_with(kInner)) return "model." + name.substr(kInner.size());
  return name;
}

void list(std::string& message, std::string_view what, std::vector<std::string> names) {
  if (names.empty()) return;
  std::sort(names.begin(), names.end());
  const size_t shown = std::min(names.size(), kMostNamesListed);
  message +=
      fmt::format("{}{} {}: {}", message.empty() ? "" : "; ", names.size(), what,
                  fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", "));
  if (shown < names.size()) message += fmt::format(" and {} more", names.size() - shown);
}

}  // namespace

CheckpointWeights::CheckpointWeights(const io::ModelFolder& folder,
                                     const architecture::DecoderSpec& spec,
                                     families::TextModel layout, WeightCoding coding)
    : place_(folder.path().string()), coding_(std::move(coding)), weights_(folder) {
  for (const std::string& name : weights_.names()) {
    const std::string own = own_name(name, layout);
    if (own.empty() || is_computed(name) || architecture::is_unread(spec, own)) {
      others_.push_back(&weights_.require(name));
      continue;
    }
    if (!by_name_.emplace(own, &weights_.require(name)).second) {
      throw DataError(fmt::format("{} occurs twice, once as {}", own, name),
                      {.file = place_, .key = own, .hint = "fetch the model again"});
    }
  }
  find_codes(spec, folder);
  match(spec);
  check_tied_head(spec);
}

void CheckpointWeights::find_codes(const architecture::DecoderSpec& spec,
                                   const io::ModelFolder& folder) {
  const FindTensor find = [this](const std::string& name) {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  };
  for (const architecture::ParameterDeclaration& parameter : architecture::declare_parameters(spec))
    if (std::optional<StoredCodes> codes = StoredCodes::find(parameter.name, find, place_))
      codes_.emplace(parameter.name, std::move(*codes));
  const std::optional<WeightCoding> declared = read_quantization_config(folder.config());
  if (codes_.empty()) {
    if (declared)
      throw DataError("config.json has a quantization_config, but no weight is quantised",
                      {.file = place_,
                       .key = "quantization_config",
                       .hint = "take it out of config.json and quantise with --quantization"});
    return;
  }
  const kernels::BitsandbytesFormat& stored = codes_.begin()->second.format();
  if (coding_.format &&
      (coding_.format->type != stored.type || coding_.format->nested != stored.nested))
    throw ConfigError(
        fmt::format("the folder is quantised: its weights are {}{}, and {}{} was requested",
                    kernels::code_type_name(stored.type),
                    stored.nested ? " with double quantisation" : "",
                    kernels::code_type_name(coding_.format->type),
                    coding_.format->nested ? " with double quantisation" : ""),
        {.file = place_,
         .hint =
             "leave the quantisation out, or dequantise the folder first: convoy models quantize "
             "--dequantize"});
  coding_.format.reset();  // unquantised weights of such a folder stay unquantised
}

void CheckpointWeights::match(const architecture::DecoderSpec& spec) const {
  std::vector<std::string> missing;
  std::vector<std::string> unfit;
  std::vector<std::string> unexpected;
  std::unordered_set<std::string> declared;
  for (const architecture::ParameterDeclaration& parameter :
       architecture::declare_parameters(spec)) {
    declared.insert(parameter.name);
    if (const StoredCodes* const codes = find_stored_codes(parameter.name)) {
      declared.insert(codes->keys().begin(), codes->keys().end());
      if (codes->shape() != parameter.shape)
        unfit.push_back(
            fmt::format("{} {} instead of {}", parameter.name, codes->shape(), parameter.shape));
      continue;
    }
    const auto found = by_name_.find(parameter.name);
    if (found == by_name_.end()) {
      missing.push_back(parameter.name);
    } else if (found->second->shape != parameter.shape) {
      unfit.push_back(fmt::format("{} {} instead of {}", parameter.name, found->second->shape,
                                  parameter.shape));
    } else if (!device::is_float(found->second->dtype)) {
      unfit.push_back(fmt::format("{} {} instead of a float type", parameter.name,
                                  io::dtype_name(found->second->dtype)));
    }
  }
  for (const auto& [name, view] : by_name_) {
    const bool is_tied_head = spec.tied_head && name == "lm_head.weight";
    if (!declared.contains(name) && !is_tied_head) unexpected.push_back(name);
  }
  std::string message;
  list(message, "missing", std::move(missing));
  list(message, "of another shape or type than config.json says", std::move(unfit));
  list(message, "unexpected", std::move(unexpected));
  if (message.empty()) return;
  throw DataError(
      "the weights do not fit config.json: " + message,
      {.file = place_, .hint = "config.json and weights must come from the same model"});
}

void CheckpointWeights::check_tied_head(const architecture::DecoderSpec& spec) const {
  const auto head = by_name_.find("lm_head.weight");
  if (!spec.tied_head || head == by_name_.end()) return;
  const io::TensorView& embedding = *by_name_.at("model.embed_tokens.weight");
  const io::TensorView& stored = *head->second;
  if (stored.dtype == embedding.dtype && stored.shape == embedding.shape &&
      std::equal(stored.bytes.begin(), stored.bytes.end(), embedding.bytes.begin())) {
    return;
  }
  throw DataError(
      "lm_head.weight differs from model.embed_tokens.weight, but tie_word_embeddings is true",
      {.file = place_,
       .key = "lm_head.weight",
       .hint = "set tie_word_embeddings to false in config.json if the head is its own"});
}

const StoredCodes* CheckpointWeights::find_stored_codes(const std::string& name) const {
  const auto found = codes_.find(name);
  return found == codes_.end() ? nullptr : &found->second;
}

std::optional<kernels::BitsandbytesFormat> CheckpointWeights::coding_of(
    const std::string& name) const {
  if (const StoredCodes* const codes = find_stored_codes(name)) return codes->format();
  return is_skipped(coding_, name) ? std::nullopt : coding_.format;
}

kernels::BitsandbytesWeight CheckpointWeights::read_bitsandbytes(const std::string& name,
                                                                 at::ScalarType dtype) const {
  if (const StoredCodes* const codes = find_stored_codes(name)) return codes->read();
  try {
    return kernels::encode_weight(read(name, dtype), *coding_of(name));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", name, error.what()),
                    {.file = place_, .key = name, .hint = error.location().hint});
  }
}

at::Tensor CheckpointWeights::read(const std::string& name, at::ScalarType dtype) const {
  if (const StoredCodes* const codes = find_stored_codes(name))
    return kernels::decode_weight(codes->read(), dtype);
  return device::copy_to_tensor(*by_name_.at(name), dtype);
}

void CheckpointWeights::read_elements(const std::string& name, int64_t begin,
                                      const at::Tensor& out) const {
  if (find_stored_codes(name) != nullptr) {
    const at::Tensor values = read(name, at::kFloat);
    out.copy_(values.view({-1}).narrow(0, begin, out.numel()));
    return;
  }
  out.copy_(device::copy_to_tensor(by_name_.at(name)->elements(begin, out.numel())));
}

at::ScalarType CheckpointWeights::stored_dtype(const std::string& name) const {
  if (const StoredCodes* const codes = find_stored_codes(name)) return codes->dtype();
  return device::tensor_dtype(by_name_.at(name)->dtype);
}

}  // namespace convoy::models
