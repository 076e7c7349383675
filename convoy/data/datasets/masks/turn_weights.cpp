// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/masks/turn_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "convoy/core/base/lower_case.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kWeight = "weight";
// The key of a settled weight that counts only if the turn would be learnt without the weight too.
constexpr std::string_view kWeightIfLearnt = "loss_weight";
constexpr std::string_view kScale = "loss_scale";
constexpr std::string_view kMasked = "masked";
constexpr std::array<std::string_view, 8> kWeightKeys = {
    kWeight, "loss_weight", "train", "training", "trainable", "loss", "loss_mask", kMasked};
// Keys that say whether a turn of any role is learnt. In the programs that use the other keys,
// these keys belong to answers only.
constexpr std::array<std::string_view, 5> kDecidingKeys = {"train", "training", "trainable",
                                                           "loss_mask", kMasked};
// Keys that mark parts of a content, which is not supported.
constexpr std::array<std::string_view, 3> kPartKeys = {"train_detail", "training_detail",
                                                       "reasoning_training_detail"};
constexpr std::array<std::string_view, 9> kStems = {"weight",   "train", "loss", "mask",  "learn",
                                                    "supervis", "ignor", "skip", "exclud"};

// Within these bounds neither a weight nor a sum of weights leaves the range of fp32.
constexpr double kLeastWeight = 1e-6;
constexpr double kMostWeight = 1e6;

std::optional<double> weight_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  if (!value.is_number()) return std::nullopt;
  const auto weight = value.get<double>();
  const bool usable = weight == 0 || (weight >= kLeastWeight && weight <= kMostWeight);
  return usable ? std::optional(weight) : std::nullopt;
}

const Json* member(const Json& message, std::string_view key) {
  const auto found = message.find(key);
  return found == message.end() || found->is_null() ? nullptr : &*found;
}

std::string wanted(std::string_view key, const Json& value, std::string_view what) {
  return fmt::format("`{}` is {}, wanted {}", key,
                     value.is_structured()
                         ? fmt::format("a JSON {}", value.type_name())
                         : value.dump(-1, ' ', true, Json::error_handler_t::replace),
                     what);
}

bool has_deciding_key(const Json& message) {
  return std::ranges::any_of(kDecidingKeys,
                             [&](std::string_view key) { return member(message, key) != nullptr; });
}

// True when two weights contradict each other. A weight of 1 agrees with every weight except 0,
// because it may just mean "yes".
bool contradict(double left, double right) {
  return (left == 0) != (right == 0) || (left != 1 && right != 1 && left != right);
}

// The words of a key in snake_case, kebab-case or camelCase, in lower case.
std::vector<std::string> key_words(std::string_view key) {
  std::vector<std::string> words(1);
  bool was_lower = false;
  for (const char letter : key) {
    const auto code = static_cast<unsigned char>(letter);
    const bool is_upper = std::isupper(code) != 0;
    if (std::isalpha(code) == 0 || (is_upper && was_lower)) words.emplace_back();
    if (std::isalpha(code) != 0) words.back() += lower_case(letter);
    was_lower = std::islower(code) != 0;
  }
  return words;
}

}  // namespace

std::string settle_turn_weight(Json& message) {
  std::optional<double> said;
  std::string_view said_by;
  for (const std::string_view key : kWeightKeys) {
    const Json* const value = member(message, key);
    if (value == nullptr) continue;
    std::optional<double> weight = weight_of(*value);
    if (key == kMasked && weight && *weight != 0 && *weight != 1) weight.reset();
    if (!weight)
      return wanted(
          key, *value,
          key == kMasked ? "true or false" : "true, false, 0, or a weight from 1e-6 to 1e6");
    if (key == kMasked) weight = 1 - *weight;
    if (said && contradict(*said, *weight))
      return fmt::format("`{}` and `{}` contradict each other", said_by, key);
    if (!said || *said == 1) {
      said = weight;
      said_by = key;
    }
  }
  for (const std::string_view key : kPartKeys)
    if (member(message, key) != nullptr)
      return fmt::format("`{}` chooses parts of a text, but a turn is learnt as a whole", key);
  std::optional<double> scale;
  if (const Json* const value = member(message, kScale)) {
    scale = weight_of(*value);
    if (!scale) return wanted(kScale, *value, "0, or a factor from 1e-6 to 1e6");
  }
  const bool decides =
      message.value("role", Json()) == "assistant" || has_deciding_key(message) || said == 0;
  for (const std::string_view key : kWeightKeys) message.erase(std::string(key));
  message.erase(std::string(kScale));
  if (said) message[std::string(decides ? kWeight : kWeightIfLearnt)] = *said;
  if (scale) message[std::string(kScale)] = *scale;
  return {};
}

bool is_turn_weight_key(std::string_view key) {
  return key == kScale ||
         std::find(kWeightKeys.begin(), kWeightKeys.end(), key) != kWeightKeys.end() ||
         std::find(kPartKeys.begin(), kPartKeys.end(), key) != kPartKeys.end();
}

bool looks_like_turn_weight(std::string_view key) {
  if (is_turn_weight_key(key)) return false;
  const std::vector<std::string> words = key_words(key);
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return std::any_of(kStems.begin(), kStems.end(),
                       [&](std::string_view stem) { return word.starts_with(stem); });
  });
}

bool has_turn_weights(const Json& messages) {
  return std::any_of(messages.begin(), messages.end(), [](const Json& message) {
    return message.is_object() && (message.contains(kWeight) || message.contains(kScale) ||
                                   message.contains(kWeightIfLearnt));
  });
}

Json without_turn_weights(Json messages) {
  for (Json& message : messages) {
    if (!message.is_object()) continue;
    for (const std::string_view key : {kWeight, kWeightIfLearnt, kScale})
      message.erase(std::string(key));
  }
  return messages;
}

std::vector<double> turn_weights(const Json& messages,
                                 const std::function<bool(size_t message)>& is_learnt) {
  std::vector<double> weights;
  for (size_t index = 0; index < messages.size(); ++index) {
    const Json* const weight = member(messages[index], kWeight);
    const Json* const if_learnt = member(messages[index], kWeightIfLearnt);
    const Json* const scale = member(messages[index], kScale);
    const double own = weight != nullptr      ? weight->get<double>()
                       : !is_learnt(index)    ? 0.0
                       : if_learnt != nullptr ? if_learnt->get<double>()
                                              : 1.0;
    weights.push_back(own * (scale != nullptr ? scale->get<double>() : 1.0));
  }
  return weights;
}

}  // namespace convoy::data
