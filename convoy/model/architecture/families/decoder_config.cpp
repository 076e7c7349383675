// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/families/decoder_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "convoy/model/architecture/families/missing_forms.h"

namespace convoy::families {
namespace {

// Bounds far above any model there is, and small enough that no product of them overflows.
constexpr int64_t kMostVocab = int64_t{1} << 24;
constexpr int64_t kMostWidth = int64_t{1} << 20;
constexpr int64_t kMostFfn = int64_t{1} << 22;
constexpr int64_t kMostLayers = 1000;
constexpr int64_t kMostHeads = 4096;
constexpr int64_t kMostHeadDim = 4096;

int64_t int_or_required(const io::JsonReader& config, const std::string& key, int64_t fallback,
                        int64_t least, int64_t most) {
  return fallback > 0 ? config.int_or(key, fallback, least, most)
                      : config.require_int(key, least, most);
}

// A key of config.json that requests an unsupported form by any value except null and false.
struct KeyOfForm {
  std::string_view key;
  const char* words;
  const char* nearest;  // model_type of the nearest family
};
constexpr std::array kKeysOfForms{
    KeyOfForm{"attn_logit_softcapping", "soft caps on attention scores", "gemma2"},
    KeyOfForm{"final_logit_softcapping", "soft caps on logits", "gemma2"},
    KeyOfForm{"use_bidirectional_attention", "attention that looks ahead", "gemma3_text"},
    KeyOfForm{"use_mrope", "rotation by places in an image", "qwen2"},
    KeyOfForm{kOutputGate, "an output gate of attention", "qwen3"}};

void refuse_partial_rotation(const io::JsonReader& reader) {
  const std::string key(kPartialRotation);
  if (reader.double_or(key, 1.0, 0.0, 1.0) != 1.0) {
    refuse_form(reader, key, "a rotation of a part of each head",
                "take a model of a family that has it: phi3, glm, glm4, qwen3_5_text");
  }
}

}  // namespace

void refuse_unsupported(const io::JsonReader& config) { refuse_unsupported_but(config, {}); }

void refuse_unsupported_but(const io::JsonReader& config,
                            std::initializer_list<std::string_view> keys_of_forms) {
  const auto is_there = [&](std::string_view key) {
    return std::find(keys_of_forms.begin(), keys_of_forms.end(), key) != keys_of_forms.end();
  };
  for (const KeyOfForm& form : kKeysOfForms) {
    const std::string key(form.key);
    if (!is_there(key) && config.has(key) && *config.find(key) != false)
      refuse_form(config, key, form.words, take_nearest(form.nearest));
  }
  for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"})
    if (const io::Json* const count = config.find(key);
        count != nullptr && count->is_number() && count->get<double>() > 1)
      refuse_form(config, key, "a mixture of experts", "take a dense model of this family");
  if (!is_there(kPartialRotation)) refuse_partial_rotation(config);
}

double read_soft_cap(const io::JsonReader& config, const std::string& key, double fallback) {
  constexpr double kLeastCap = 1e-3, kMostCap = 1e9;
  if (config.find(key) == nullptr) return fallback;
  return config.has(key) ? config.require_double(key, kLeastCap, kMostCap) : 0.0;
}

architecture::Activation read_activation(const io::JsonReader& config, const std::string& key,
                                         const std::string& fallback) {
  const std::string name = config.string_or(key, fallback);
  if (name == "silu" || name == "swish") return architecture::Activation::Silu;
  if (name == "gelu_pytorch_tanh") return architecture::Activation::GeluTanh;
  refuse_form(config, key, fmt::format("the activation `{}`", name),
              "take a model of this family with silu or gelu_pytorch_tanh");
}

void read_sizes(const io::JsonReader& config, const SizeDefaults& defaults,
                architecture::DecoderSpec& spec) {
  spec.vocab_size = int_or_required(config, "vocab_size", defaults.vocab_size, 1, kMostVocab);
  spec.hidden_size = config.require_int("hidden_size", 1, kMostWidth);
  spec.ffn_size = config.require_int("intermediate_size", 1, kMostFfn);
  spec.layers.resize(config.require_int("num_hidden_layers", 1, kMostLayers));
  spec.num_heads =
      int_or_required(config, "num_attention_heads", defaults.num_heads, 1, kMostHeads);
  spec.num_kv_heads = config.int_or(
      "num_key_value_heads", defaults.num_kv_heads > 0 ? defaults.num_kv_heads : spec.num_heads, 1,
      kMostHeads);
  if (spec.num_heads % spec.num_kv_heads != 0) {
    config.fail("num_key_value_heads", fmt::format("{} does not divide num_attention_heads, {}",
                                                   spec.num_kv_heads, spec.num_heads));
  }
  const int64_t head_dim =
      defaults.head_dim > 0 ? defaults.head_dim : spec.hidden_size / spec.num_heads;
  if (!config.has("head_dim") && defaults.head_dim == 0 && spec.hidden_size % spec.num_heads != 0) {
    config.fail("num_attention_heads",
                fmt::format("{} does not divide hidden_size, {}, and there is no head_dim",
                            spec.num_heads, spec.hidden_size));
  }
  spec.head_dim =
      config.has("head_dim") ? config.require_int("head_dim", 2, kMostHeadDim) : head_dim;
  if (spec.head_dim % 2 != 0 || spec.head_dim < 2) {
    config.fail("head_dim", fmt::format("{} features cannot be rotated in pairs", spec.head_dim));
  }
  spec.max_positions =
      config.int_or("max_position_embeddings", defaults.max_positions, 1, kMostPositions);
  spec.norm_epsilon = config.double_or("rms_norm_eps", defaults.norm_epsilon, 0.0, 1.0);
}

namespace {

// Reads YaRN as transformers does. A factor that is null is the ratio of the two lengths. Without
// an attention_factor, DeepSeek's mscale and mscale_all_dim decide, else the paper's rule.
void read_yarn(const io::JsonReader& parameters, int64_t max_positions,
               architecture::RopeSpec& rope) {
  rope.kind = architecture::RopeKind::Yarn;
  rope.original_max_positions =
      parameters.int_or("original_max_position_embeddings", max_positions, 1, kMostPositions);
  rope.factor = parameters.has("factor") ? parameters.require_double("factor", 1e-6, 1e6)
                                         : static_cast<double>(max_positions) /
                                               static_cast<double>(rope.original_max_positions);
  const auto optional = [&](const char* key) { return parameters.double_or(key, 0.0, 0.0, 1e6); };
  const auto given_or = [&](const char* key, double usual) {
    const double given = optional(key);
    return given > 0 ? given : usual;
  };
  rope.beta_fast = given_or("beta_fast", rope.beta_fast);
  rope.beta_slow = given_or("beta_slow", rope.beta_slow);
  if (rope.beta_fast < rope.beta_slow) parameters.fail("beta_fast", "must not be below beta_slow");
  rope.whole_features = parameters.bool_or("truncate", true);
  const auto scale = [&](double mscale) {
    return rope.factor <= 1 ? 1.0 : 0.1 * mscale * std::log(rope.factor) + 1.0;
  };
  const double mscale = optional("mscale"), mscale_all = optional("mscale_all_dim");
  rope.table_scale = mscale > 0 && mscale_all > 0 ? scale(mscale) / scale(mscale_all) : scale(1);
  if (parameters.has("attention_factor"))
    rope.table_scale = parameters.require_double("attention_factor", 0.0, 1e6);
}

std::vector<double> read_divisors(const io::JsonReader& parameters, const char* key) {
  const io::Json* const factors = parameters.find(key);
  if (factors == nullptr || !factors->is_array() || factors->empty())
    parameters.fail(key, "must be a list of numbers");
  std::vector<double> divisors;
  for (const io::Json& factor : *factors) {
    const double divisor = factor.is_number() ? factor.get<double>() : 0.0;
    if (!(divisor >= 1e-6 && divisor <= 1e6))
      parameters.fail(key, "must hold numbers from 1e-6 to 1e6");
    divisors.push_back(divisor);
  }
  return divisors;
}

// As in transformers, a factor that is absent is the ratio of the two lengths, and one scale holds
// for both lists of divisors.
void read_longrope(const io::JsonReader& parameters, int64_t max_positions,
                   architecture::RopeSpec& rope) {
  rope.kind = architecture::RopeKind::LongRope;
  rope.original_max_positions =
      parameters.int_or("original_max_position_embeddings", max_positions, 2, kMostPositions);
  const auto original = static_cast<double>(rope.original_max_positions);
  rope.factor =
      parameters.double_or("factor", static_cast<double>(max_positions) / original, 1e-6, 1e6);
  const double usual =
      rope.factor <= 1 ? 1.0 : std::sqrt(1.0 + std::log(rope.factor) / std::log(original));
  rope.table_scale = parameters.double_or("attention_factor", usual, 0.0, 1e6);
  rope.divisors = read_divisors(parameters, "short_factor");
  rope.long_divisors = read_divisors(parameters, "long_factor");
  if (rope.long_divisors.size() != rope.divisors.size())
    parameters.fail("long_factor", "must be a list as long as short_factor");
}

// Phi-3's first files name LongRope by two other words.
bool is_longrope(const io::JsonReader& parameters, const std::string& kind) {
  return kind == "longrope" || kind == "su" || (kind == "yarn" && parameters.has("short_factor"));
}

// `max_positions`: max_position_embeddings of config.json.
architecture::RopeSpec read_rule(const io::JsonReader& parameters, double fallback_theta,
                                 int64_t max_positions) {
  architecture::RopeSpec rope;
  rope.theta = parameters.double_or("rope_theta", fallback_theta, kLeastTheta, kMostTheta);
  const std::string key = parameters.has("rope_type") ? "rope_type" : "type";
  const std::string kind = parameters.string_or(key, "default");
  if (kind == "default") return rope;
  if (kind == "linear") {
    rope.kind = architecture::RopeKind::Linear;
    rope.factor = parameters.require_double("factor", 1e-6, 1e6);
  } else if (kind == "llama3") {
    rope.kind = architecture::RopeKind::Llama3;
    rope.factor = parameters.require_double("factor", 1e-6, 1e6);
    rope.low_freq_factor = parameters.require_double("low_freq_factor", 1e-6, 1e6);
    rope.high_freq_factor = parameters.require_double("high_freq_factor", 1e-6, 1e6);
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      parameters.fail("high_freq_factor", "must be above low_freq_factor");
    }
    rope.original_max_positions =
        parameters.int_or("original_max_position_embeddings", max_positions, 1, kMostPositions);
  } else if (kind == "dynamic") {
    // Changes only the rotation of rows longer than max_position_embeddings, and no row may be
    // longer.
    parameters.require_double("factor", 1e-6, 1e6);
  } else if (is_longrope(parameters, kind)) {
    read_longrope(parameters, max_positions, rope);
  } else if (kind == "yarn") {
    read_yarn(parameters, max_positions, rope);
  } else {
    refuse_form(parameters, key, fmt::format("the rotation `{}`", kind),
                "take a model of this family that rotates by default, linear, llama3, yarn, "
                "longrope or dynamic");
  }
  return rope;
}

}  // namespace

architecture::RopeSpec read_rope_rule(const io::JsonReader& parameters, double fallback_theta,
                                      int64_t max_positions) {
  refuse_partial_rotation(parameters);
  return read_rule(parameters, fallback_theta, max_positions);
}

namespace {

using ReadRule = architecture::RopeSpec(const io::JsonReader&, double, int64_t);

architecture::RopeSpec rope_of(const io::JsonReader& config, int64_t max_positions,
                               double default_theta, ReadRule read) {
  const double theta = config.double_or("rope_theta", default_theta, kLeastTheta, kMostTheta);
  std::optional<architecture::RopeSpec> older;
  std::optional<architecture::RopeSpec> newer;
  if (const auto scaling = config.optional_object("rope_scaling")) {
    older = read(*scaling, theta, max_positions);
  }
  if (const auto parameters = config.optional_object("rope_parameters")) {
    // A config that lists layer types may nest them here too; these families rotate all layers
    // alike.
    const auto nested = parameters->optional_object("full_attention");
    newer = read(nested ? *nested : *parameters, theta, max_positions);
    const auto sliding = parameters->optional_object("sliding_attention");
    if (sliding && !(read(*sliding, theta, max_positions) == *newer)) {
      refuse_form(config, "rope_parameters", "layer types that rotate differently",
                  "take a model of a family that has them: gemma3_text, olmo3");
    }
  }
  if (older && newer && !(*older == *newer)) {
    config.fail("rope_parameters", "contradicts rope_scaling; keep one of them");
  }
  if (newer) return *newer;
  if (older) return *older;
  return {.theta = theta};
}

void check_divisors(const io::JsonReader& config, const architecture::RopeSpec& rope,
                    int64_t rotated_features) {
  const auto pairs = static_cast<size_t>(rotated_features / 2);
  if (rope.kind == architecture::RopeKind::LongRope && rope.divisors.size() != pairs)
    config.fail(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
                fmt::format("short_factor has {} numbers for {} rotated pairs of features",
                            rope.divisors.size(), pairs));
}

void raise_positions(const architecture::RopeSpec& rope, architecture::DecoderSpec& spec) {
  if (rope.kind != architecture::RopeKind::Yarn) return;
  // Users who add YaRN to a published config.json leave max_position_embeddings as it was.
  const double stretched = rope.factor * static_cast<double>(rope.original_max_positions);
  spec.max_positions =
      std::max(spec.max_positions,
               static_cast<int64_t>(std::min(stretched, static_cast<double>(kMostPositions))));
}

}  // namespace

void read_rope(const io::JsonReader& config, architecture::DecoderSpec& spec,
               double default_theta) {
  const architecture::RopeSpec rope =
      rope_of(config, spec.max_positions, default_theta, read_rope_rule);
  check_divisors(config, rope, spec.head_dim);
  raise_positions(rope, spec);
  spec.ropes = {rope};
}

void read_partial_rope(const io::JsonReader& config, const PartialRotation& partial,
                       architecture::DecoderSpec& spec) {
  constexpr double kDefaultTheta = 10000.0;
  const std::string share_key(kPartialRotation);
  architecture::RopeSpec rope = rope_of(config, spec.max_positions, kDefaultTheta, read_rule);
  double share = config.double_or(share_key, partial.usual_share, 0.0, 1.0);
  for (const char* const key : {"rope_scaling", "rope_parameters"})
    if (const auto rule = config.optional_object(key))
      share = rule->double_or(share_key, share, 0, 1);
  rope.rotated_features = static_cast<int64_t>(static_cast<double>(spec.head_dim) * share);
  rope.neighbours = partial.neighbours;
  if (rope.rotated_features < 2 || rope.rotated_features % 2 != 0)
    config.fail(share_key, fmt::format("leaves {} of a head's {} features to be rotated in pairs",
                                       rope.rotated_features, spec.head_dim));
  check_divisors(config, rope, rope.rotated_features);
  raise_positions(rope, spec);
  spec.ropes = {rope};
}

std::vector<architecture::RopeSpec> read_ropes_by_type(const io::JsonReader& config,
                                                       const ThetaByType& fallback,
                                                       int64_t max_positions) {
  std::vector<architecture::RopeSpec> ropes{{.theta = fallback.full_theta},
                                            {.theta = fallback.sliding_theta}};
  if (const auto parameters = config.optional_object("rope_parameters")) {
    // transformers also writes flat keys beside the two objects, but reads the objects.
    const bool is_by_type =
        parameters->has("full_attention") && parameters->has("sliding_attention");
    if (!is_by_type && (parameters->has("rope_theta") || parameters->has("rope_type")))
      config.fail("rope_parameters",
                  "must hold full_attention and sliding_attention for this family");
    if (const auto full = parameters->optional_object("full_attention")) {
      ropes[kFullRope] = read_rope_rule(*full, fallback.full_theta, max_positions);
    }
    if (const auto sliding = parameters->optional_object("sliding_attention")) {
      ropes[kSlidingRope] = read_rope_rule(*sliding, fallback.sliding_theta, max_positions);
    }
  }
  if (const auto scaling = config.optional_object("rope_scaling")) {
    const architecture::RopeSpec scaled =
        read_rope_rule(*scaling, ropes[kFullRope].theta, max_positions);
    if (config.has("rope_parameters") && !(scaled == ropes[kFullRope])) {
      config.fail("rope_parameters", "contradicts rope_scaling; keep one of them");
    }
    ropes[kFullRope] = scaled;
  }
  for (const architecture::RopeSpec& rope : ropes)
    if (rope.kind == architecture::RopeKind::LongRope)
      refuse_form(config, "rope_parameters", "longrope beside sliding windows",
                  "take a model of this family that rotates otherwise");
  return ropes;
}

std::vector<bool> read_layer_types(const io::JsonReader& config, int64_t num_layers) {
  std::vector<bool> sliding;
  for (const std::string& type : config.strings_or_empty("layer_types")) {
    if (type != "full_attention" && type != "sliding_attention") {
      refuse_form(config, "layer_types", fmt::format("layers of the type `{}`", type),
                  "take a model of this family whose layers are full_attention or "
                  "sliding_attention");
    }
    sliding.push_back(type == "sliding_attention");
  }
  if (!sliding.empty() && static_cast<int64_t>(sliding.size()) != num_layers) {
    config.fail("layer_types", fmt::format("names {} layers, num_hidden_layers is {}",
                                           sliding.size(), num_layers));
  }
  return sliding;
}

std::vector<bool> read_sliding_layers(const io::JsonReader& config, int64_t num_layers,
                                      int64_t interval) {
  std::vector<bool> sliding = read_layer_types(config, num_layers);
  if (!sliding.empty()) return sliding;
  for (int64_t i = 0; i < num_layers; ++i) sliding.push_back((i + 1) % interval != 0);
  return sliding;
}

std::vector<int64_t> read_windows(const io::JsonReader& config, int64_t num_layers,
                                  int64_t interval) {
  constexpr int64_t kUsualWindow = 4096;
  return windows_of(config, read_sliding_layers(config, num_layers, interval), kUsualWindow);
}

std::vector<int64_t> windows_of(const io::JsonReader& config, const std::vector<bool>& sliding,
                                int64_t usual) {
  const int64_t window = config.int_or("sliding_window", usual, 1, kMostPositions);
  const bool is_null = config.find("sliding_window") != nullptr && !config.has("sliding_window");
  std::vector<int64_t> windows;
  for (const bool slides : sliding) {
    if (slides && is_null)
      config.fail("sliding_window", "is null, but layers of this model have one");
    windows.push_back(slides ? window : 0);
  }
  return windows;
}

void read_optional_windows(const io::JsonReader& config, architecture::DecoderSpec& spec,
                           const std::function<bool(int64_t layer)>& slides_unlisted) {
  const int64_t num_layers = spec.num_layers();
  std::vector<bool> sliding = read_layer_types(config, num_layers);
  const bool has_window =
      config.bool_or("use_sliding_window", false) && config.has("sliding_window");
  if (!has_window) {
    for (const bool layer_slides : sliding) {
      if (layer_slides)
        config.fail("layer_types",
                    "has sliding layers, but use_sliding_window or sliding_window is off");
    }
    return;
  }
  const int64_t window = config.require_int("sliding_window", 1, kMostPositions);
  if (sliding.empty()) {
    for (int64_t i = 0; i < num_layers; ++i) sliding.push_back(slides_unlisted(i));
  }
  for (int64_t i = 0; i < num_layers; ++i) spec.layers[i].sliding_window = sliding[i] ? window : 0;
}

void read_qwen_windows(const io::JsonReader& config, architecture::DecoderSpec& spec) {
  const int64_t first = config.int_or("max_window_layers", 28, 0, kMostPositions);
  read_optional_windows(config, spec, [first](int64_t layer) { return layer >= first; });
}

}  // namespace convoy::families
