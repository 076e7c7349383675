// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/sampling_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/settings/usual_sampling.h"

namespace convoy::settings {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostCount = 2147483647;

class Reader {
 public:
  Reader(const Json& config, const std::string& file) : config_(config), file_(file) {}

  const Json* find(const char* key) const {
    const auto found = config_.find(key);
    return found == config_.end() || found->is_null() ? nullptr : &*found;
  }
  bool has(const char* key) const { return find(key) != nullptr; }

  template <class Number>
  void read(const char* key, double least, double most, config::AutoOr<Number>& value) const {
    const Json* const found = find(key);
    if (found == nullptr) return;
    const double number = found->is_number() ? found->get<double>() : std::nan("");
    const bool fits = std::is_floating_point_v<Number> || number == std::floor(number);
    if (!(number >= least && number <= most) || !fits)
      refuse(key, fmt::format("a {} from {:g} to {:g}",
                              std::is_floating_point_v<Number> ? "number" : "whole number", least,
                              most));
    value = static_cast<Number>(number);
  }
  // Returns nullopt when the key is absent.
  std::optional<bool> flag(const char* key) const {
    const Json* const found = find(key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_boolean()) refuse(key, "true or false");
    return found->get<bool>();
  }

 private:
  [[noreturn]] void refuse(const char* key, const std::string& wanted) const {
    throw DataError(fmt::format("{}: wanted {}, found {:.100}", key, wanted, find(key)->dump()),
                    {.file = file_, .key = key, .hint = "mend the file, or remove the key"});
  }

  const Json& config_;
  const std::string& file_;
};

// The keys of transformers' generate() that Convoy does not have and whose values would change
// texts. kNeutral: the values that change nothing.
std::vector<std::string> keys_without_effect(const Reader& reader) {
  static const std::map<std::string, Json> kNeutral = {
      {"num_beams", 1},
      {"num_beam_groups", 1},
      {"penalty_alpha", 0},
      {"typical_p", 1},
      {"epsilon_cutoff", 0},
      {"eta_cutoff", 0},
      {"top_h", nullptr},
      {"encoder_repetition_penalty", 1},
      {"length_penalty", 1},
      {"diversity_penalty", 0},
      {"no_repeat_ngram_size", 0},
      {"encoder_no_repeat_ngram_size", 0},
      {"bad_words_ids", nullptr},
      {"sequence_bias", nullptr},
      {"suppress_tokens", nullptr},
      {"begin_suppress_tokens", nullptr},
      {"forced_bos_token_id", nullptr},
      {"forced_eos_token_id", nullptr},
      {"exponential_decay_length_penalty", nullptr},
      {"guidance_scale", 1},
      {"min_length", 0},
      {"max_length", 20},
      {"min_new_tokens", 0},
      {"stop_strings", nullptr},
      {"watermarking_config", nullptr},
      {"dola_layers", nullptr},
      {"presence_penalty", 0},
      {"frequency_penalty", 0}};
  std::vector<std::string> keys;
  for (const auto& [key, neutral] : kNeutral) {
    const Json* const found = reader.find(key.c_str());
    if (found != nullptr && *found != neutral && !(found->is_structured() && found->empty()))
      keys.push_back(key);
  }
  // max_new_tokens overrides max_length in transformers too.
  if (reader.has("max_new_tokens")) std::erase(keys, "max_length");
  return keys;
}

// The source of a value.
enum class Origin { Given, Model, Usual };

template <class Number>
Origin settle(config::AutoOr<Number>& value, const config::AutoOr<Number>& model,
              const config::AutoOr<Number>& usual) {
  if (!value.is_auto()) return Origin::Given;
  const bool has_model = !model.is_auto();
  value = has_model ? model : usual;
  return has_model ? Origin::Model : Origin::Usual;
}

struct Settled {
  SamplingFlags flags;
  std::map<std::string, Origin> origins;
};

Settled settle_all(SamplingFlags given, const SamplingSources& sources) {
  if (given.greedy) {
    if (given.temperature.value.value_or(0) > 0)
      throw ConfigError("--greedy and a --temperature above 0 exclude each other",
                        {.key = "--temperature", .hint = "leave one of them out"});
    given.temperature = 0.0;
  }
  Settled settled{.flags = std::move(given), .origins = {}};
  const SamplingValues& model = sources.model.values;
  const SamplingValues& usual = sources.usual;
  SamplingFlags& flags = settled.flags;
  std::map<std::string, Origin>& origins = settled.origins;
  origins["temperature"] = settle(flags.temperature, model.temperature, usual.temperature);
  origins["top_p"] = settle(flags.top_p, model.top_p, usual.top_p);
  origins["top_k"] = settle(flags.top_k, model.top_k, usual.top_k);
  origins["min_p"] = settle(flags.min_p, model.min_p, usual.min_p);
  origins["repetition_penalty"] =
      settle(flags.repetition_penalty, model.repetition_penalty, usual.repetition_penalty);
  origins["max_new_tokens"] =
      settle(flags.max_new_tokens, model.max_new_tokens, usual.max_new_tokens);
  return settled;
}

}  // namespace

ModelSampling read_model_sampling(const Json& generation_config, const std::string& file) {
  ModelSampling model{.values = {}, .file = file, .unused = {}};
  const Reader reader(generation_config, file);
  SamplingValues& values = model.values;
  constexpr double kLeast = 1e-9;
  reader.read("temperature", 0, 1e3, values.temperature);
  reader.read("top_p", 0, 1, values.top_p);
  reader.read("top_k", -1, kMostCount, values.top_k);
  reader.read("min_p", 0, 1, values.min_p);
  reader.read("repetition_penalty", kLeast, 1e9, values.repetition_penalty);
  reader.read("max_new_tokens", 1, kMostCount, values.max_new_tokens);
  // top_p 0 becomes kLeast, because every nucleus keeps the likeliest token. top_k -1 keeps all
  // tokens, as in vLLM.
  if (values.top_p.value) values.top_p = std::max(*values.top_p.value, kLeast);
  if (values.top_k.value) values.top_k = std::max<int64_t>(*values.top_k.value, 0);
  model.unused = keys_without_effect(reader);
  const std::optional<bool> do_sample = reader.flag("do_sample");
  if (do_sample == false) {
    values.temperature = 0.0;
    return model;
  }
  const bool draws = do_sample.has_value() || values.temperature.value || values.top_p.value ||
                     values.top_k.value || values.min_p.value;
  if (!draws) return model;
  values.temperature = values.temperature.value.value_or(1);
  values.top_p = values.top_p.value.value_or(1);
  values.top_k = values.top_k.value.value_or(0);
  values.min_p = values.min_p.value.value_or(0);
  return model;
}

SamplingValues usual_sampling() {
  SamplingValues values;
  values.max_new_tokens = kUsualMaxNewTokens;
  values.temperature = kUsualTemperature;
  values.top_p = kUsualTopP;
  values.top_k = 0;
  values.min_p = 0;
  values.repetition_penalty = 1;
  return values;
}

SamplingSources sources_of_requests(const SamplingValues& given, SamplingSources sources) {
  const auto prefer = [&](auto member) {
    if (!(given.*member).is_auto()) sources.model.values.*member = given.*member;
  };
  prefer(&SamplingValues::max_new_tokens);
  prefer(&SamplingValues::temperature);
  prefer(&SamplingValues::top_p);
  prefer(&SamplingValues::top_k);
  prefer(&SamplingValues::min_p);
  prefer(&SamplingValues::repetition_penalty);
  return sources;
}

SamplingFlags settle_sampling(SamplingFlags given, const SamplingSources& sources) {
  return settle_all(std::move(given), sources).flags;
}

std::string sampling_line(const SamplingFlags& given, const SamplingSources& sources) {
  const Settled settled = settle_all(given, sources);
  const SamplingFlags& flags = settled.flags;
  std::map<Origin, std::vector<std::string>> words;
  const auto add = [&](const char* key, const auto& value, double neutral) {
    if (static_cast<double>(*value.value) != neutral)
      words[settled.origins.at(key)].push_back(
          fmt::format("{} {:g}", key, static_cast<double>(*value.value)));
  };
  if (*flags.temperature.value == 0) {
    words[settled.origins.at("temperature")].emplace_back("greedy");
  } else {
    add("temperature", flags.temperature, -1);
    add("top_p", flags.top_p, 1);
    add("top_k", flags.top_k, 0);
    add("min_p", flags.min_p, 0);
  }
  add("repetition_penalty", flags.repetition_penalty, 1);
  add("max_new_tokens", flags.max_new_tokens, 0);
  std::string line;
  for (const auto& [origin, of_origin] : words)
    line += fmt::format("{} {} {}", line.empty() ? "sampling:" : ";", fmt::join(of_origin, ", "),
                        origin == Origin::Given   ? "as given"
                        : origin == Origin::Model ? "by " + sources.model.file
                                                  : "by default");
  if (!sources.model.unused.empty())
    line += fmt::format("; {} of {} {} no effect", fmt::join(sources.model.unused, ", "),
                        sources.model.file, sources.model.unused.size() == 1 ? "has" : "have");
  return line;
}

std::string served_sampling_line(const SamplingFlags& given, const SamplingSources& sources) {
  std::string line = sampling_line(given, sources) + "; these are sent, no default of the servers";
  if (sources.model.file.empty())
    line += ": --model DIR beside --engine-model takes those of its generation_config.json";
  return line;
}

}  // namespace convoy::settings
