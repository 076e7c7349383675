// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/config_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/gemma4_config.h"
#include "convoy/core/io/gguf/rope_divisors.h"
#include "convoy/core/io/gguf/tokenizer_text.h"
#include "convoy/core/io/json_text.h"

namespace convoy::gguf {
namespace {

using io::Json;

// Limits far above the sizes of existing models.
constexpr int64_t kMostSize = int64_t{1} << 24;
constexpr int64_t kMostLayers = 1000;
constexpr int64_t kMostContext = int64_t{1} << 31;

constexpr const char* kOriginalLength = "rope.scaling.original_context_length";
constexpr const char* kScoreCap = "attn_logit_softcapping";
constexpr const char* kLogitCap = "final_logit_softcapping";
constexpr const char* kAttnFactor = "rope.scaling.attn_factor";
constexpr const char* kLogitScale = "logit_scale";
constexpr const char* kWindow = "attention.sliding_window";
constexpr const char* kWindowPattern = "attention.sliding_window_pattern";
constexpr const char* kQueryGrowth = "attention.temperature_scale";
constexpr const char* kFurtherLayers = "nextn_predict_layers";
constexpr const char* kRecurrentLayers = "attention.recurrent_layers";
constexpr const char* kFullInterval = "full_attention_interval";
constexpr const char* kKeyHeads = "ssm.group_count";
constexpr const char* kValueHeads = "ssm.time_step_rank";
constexpr const char* kKeyHeadDim = "ssm.state_size";
constexpr const char* kValueWidth = "ssm.inner_size";
constexpr const char* kConvWidth = "ssm.conv_kernel";
constexpr const char* kYarnBetaFast = "rope.scaling.yarn_beta_fast";
constexpr const char* kYarnBetaSlow = "rope.scaling.yarn_beta_slow";
constexpr const char* kYarnAttnFactor = "rope.scaling.yarn_attn_factor";
constexpr const char* kYarnLogMultiplier = "rope.scaling.yarn_log_multiplier";

// Keys after "llama." that are used, or that repeat what other keys say.
constexpr std::array kReadKeys = {
    "block_count", "context_length", "embedding_length", "feed_forward_length",
    "attention.head_count", "attention.head_count_kv", "attention.key_length",
    "attention.value_length", "attention.layer_norm_rms_epsilon", kWindow, kWindowPattern,
    kQueryGrowth, "attention.causal", "rope.freq_base", "rope.freq_base_swa",
    "rope.dimension_count", "rope.scaling.type", "rope.scaling.factor", kAttnFactor,
    kOriginalLength, kYarnBetaFast, kYarnBetaSlow, kYarnAttnFactor, kYarnLogMultiplier,
    "rope.scaling.finetuned", "rope.scale_linear", "vocab_size", "tensor_data_layout",
    "use_parallel_residual", "pooling_type", kScoreCap, kLogitCap, "expert_count",
    "expert_used_count", kLogitScale, "residual_scale", "embedding_scale", "attention.scale",
    "attention.clamp_kqv", "attention.max_alibi_bias",
    // text has the same position in all sections
    "rope.dimension_sections", kFurtherLayers, kRecurrentLayers, kFullInterval, kKeyHeads,
    kValueHeads, kKeyHeadDim, kValueWidth, kConvWidth, kSharedKvLayers, kSlidingKeyLength,
    kSlidingValueLength, kSlidingRotated, kLayerInputWidth};

class Config {
 public:
  Config(const File& file, const Family& family, const FindPlace& find, const ReadValues& read)
      : file_(file),
        family_(family),
        find_(find),
        read_(read),
        sizes_(read_sizes(file)),
        prefix_(file.require_text("general.architecture") + ".") {}

  std::string text() {
    refuse_other_maths();
    config_ = {{"architectures", {family_.class_name}},
               {"model_type", family_.model_type},
               {"vocab_size", vocab_size()},
               {"hidden_size", whole("embedding_length", kMostSize)},
               {"intermediate_size", ffn_size()},
               {"num_hidden_layers", sizes_.num_layers},
               {"num_attention_heads", sizes_.num_heads},
               {"num_key_value_heads", sizes_.num_kv_heads},
               {"head_dim", sizes_.head_dim},
               {"max_position_embeddings", whole("context_length", kMostContext)},
               {"rms_norm_eps", number("attention.layer_norm_rms_epsilon")},
               {"tie_word_embeddings", find_("output.weight") == nullptr},
               {"torch_dtype", "float32"}};
    const bool is_gemma = family_.architecture.starts_with("gemma");
    const bool is_first_gemma = family_.architecture == "gemma";
    config_[(is_gemma && !is_first_gemma) || family_.gate_map ? "hidden_activation"
                                                              : "hidden_act"] =
        is_gemma ? "gelu_pytorch_tanh" : "silu";
    config_["attention_bias"] = find_("blk.0.attn_q.bias") != nullptr;
    config_["mlp_bias"] = find_("blk.0.ffn_gate.bias") != nullptr;
    add_tokens();
    if (family_.architecture == "gemma2") add_gemma2();
    if (family_.architecture == "gemma3") add_gemma3();
    if (family_.layer_inputs) add_gemma4();
    if (family_.architecture == "granite") add_granite();
    if (family_.architecture == "phi3") add_phi();
    if (family_.delta_net) add_delta_net();
    if (family_.rotates_part) config_["partial_rotary_factor"] = rotated_share();
    if (family_.architecture == "smollm3") {
      config_["no_rope_layer_interval"] = 4;  // fixed, as in llama.cpp
      config_["use_sliding_window"] = false;
    }
    if (family_.model_type == "mistral") config_["sliding_window"] = Json();
    if (!family_.layer_inputs) add_rope();
    if (family_.gate_map) add_glimmer();
    if (family_.model_type == "olmo3") add_olmo3();
    if (family_.model_type == "ministral3") add_query_growth();
    return config_.dump(2) + "\n";
  }

 private:
  std::string key(const std::string& name) const { return prefix_ + name; }
  int64_t whole(const std::string& name, int64_t most) const {
    return file_.require_integer(key(name), 1, most);
  }
  double number(const std::string& name) const {
    const auto value = file_.real(key(name));
    if (!value) file_.fail(key(name), "is missing");
    return *value;
  }

  int64_t vocab_size() const {
    const TensorPlace* const embedding = find_("token_embd.weight");
    if (embedding == nullptr || embedding->shape.size() != 2)
      throw DataError("there is no token_embd.weight of two dims",
                      {.file = file_.path().string(),
                       .key = "token_embd.weight",
                       .hint = "the file holds no language model, or is cut: get it again"});
    return embedding->shape[0];
  }

  void refuse_unless(bool fine, const std::string& name, const std::string& message) const {
    if (!fine) file_.fail(key(name), message);
  }

  void refuse_other_maths() const {
    for (const char* name : {"expert_count", "expert_used_count"})
      refuse_unless(file_.integer(key(name), 0, kMostSize).value_or(0) == 0, name,
                    "mixtures of experts are not supported");
    std::vector<const char*> others = {"attention.max_alibi_bias", "attention.clamp_kqv"};
    if (family_.architecture != "gemma2") others.push_back(kScoreCap);
    if (family_.architecture != "gemma2" && !family_.layer_inputs && !family_.gate_map)
      others.push_back(kLogitCap);
    for (const char* name : others)
      refuse_unless(file_.real(key(name)).value_or(0) == 0, name, "is not supported");
    if (family_.architecture == "granite")
      refuse_unless(file_.truth(key("rope.scaling.finetuned")).value_or(true),
                    "rope.scaling.finetuned", "Granite without a rotation is not supported");
    else
      for (const char* name : {kLogitScale, "residual_scale", "embedding_scale", "attention.scale"})
        refuse_unless(
            !file_.real(key(name)) || (family_.gate_map && std::string_view(name) == kLogitScale),
            name, "is not supported for this architecture");
    refuse_unless(find_(kShortDivisors) != nullptr || file_.real(key(kAttnFactor)).value_or(1) == 1,
                  kAttnFactor, "is supported with longrope's divisors alone; it must be 1");
    refuse_unless(file_.truth(key("attention.causal")).value_or(true), "attention.causal",
                  "only models that look back are supported");
    refuse_unless(!file_.truth(key("use_parallel_residual")).value_or(false),
                  "use_parallel_residual", "is not supported");
    refuse_rotation();
  }

  void refuse_rotation() const {
    const int64_t count = rotated();
    if (family_.layer_inputs) return;  // by the rules of two kinds of layers
    if (family_.rotates_part)
      refuse_unless(
          count >= 2 && count % 2 == 0 && count <= sizes_.head_dim, "rope.dimension_count",
          fmt::format("{} of {} features cannot be rotated in pairs", count, sizes_.head_dim));
    else
      refuse_unless(count == sizes_.head_dim, "rope.dimension_count",
                    fmt::format("only whole heads can be rotated: {} features of {}", count,
                                sizes_.head_dim));
  }

  int64_t rotated() const {
    return file_.integer(key("rope.dimension_count"), 0, kMostSize).value_or(sizes_.head_dim);
  }
  // Layers of Gemma 4 may differ: add_gemma4() writes it.
  int64_t ffn_size() const {
    return family_.layer_inputs ? 0 : whole("feed_forward_length", kMostSize);
  }
  // The share of rotated features, such that int(share * head_dim) is the number of rotated
  // features again.
  double rotated_share() const {
    const auto features = static_cast<double>(sizes_.head_dim);
    const auto count = static_cast<double>(rotated());
    const double share = count / features;
    return share * features < count ? std::nextafter(share, 1.0) : share;
  }
  int64_t window() const { return file_.integer(key(kWindow), 0, kMostContext).value_or(0); }

  // layer_types of a model with windows. The file lists the layers that slide, or says that every
  // n-th layer does not slide. `usual`: n where the file says neither.
  Json types_of_layers(int64_t usual) const {
    const List* const listed = listed_windows();
    const int64_t pattern =
        listed == nullptr ? file_.integer(key(kWindowPattern), 1, kMostSize).value_or(usual) : 0;
    Json types = Json::array();
    for (int64_t layer = 0; layer < sizes_.num_layers; ++layer) {
      const bool slides = listed == nullptr ? (layer + 1) % pattern != 0
                                            : listed->integers[static_cast<size_t>(layer)] != 0;
      types.push_back(slides ? "sliding_attention" : "full_attention");
    }
    return types;
  }
  const List* listed_windows() const {
    const auto found = file_.metadata().find(key(kWindowPattern));
    if (found == file_.metadata().end()) return nullptr;
    const List* const listed = std::get_if<List>(&found->second);
    refuse_unless(
        listed == nullptr || static_cast<int64_t>(listed->integers.size()) >= sizes_.num_layers,
        kWindowPattern,
        fmt::format("lists fewer than {} layers, as many as there are", sizes_.num_layers));
    return listed;
  }

  void add_tokens() {
    const auto bos = token_id(file_, "tokenizer.ggml.bos_token_id");
    const auto eos = token_id(file_, "tokenizer.ggml.eos_token_id");
    config_["bos_token_id"] = bos ? Json(*bos) : Json();
    config_["eos_token_id"] = eos ? Json(*eos) : Json();
  }

  // llama.cpp divides queries by the square root of head_dim; in the 27B models, by the square root
  // of another number.
  int64_t gemma_scalar(int64_t layers_of_27b) const {
    return sizes_.num_layers == layers_of_27b
               ? whole("embedding_length", kMostSize) / sizes_.num_heads
               : sizes_.head_dim;
  }

  // Absent keys have llama.cpp's values, which the published models have too.
  void add_gemma2() {
    config_["query_pre_attn_scalar"] = gemma_scalar(46);
    config_["attn_logit_softcapping"] = file_.real(key(kScoreCap)).value_or(50.0);
    config_["final_logit_softcapping"] = file_.real(key(kLogitCap)).value_or(30.0);
    config_["sliding_window"] = window() > 0 ? window() : 4096;
    Json types = Json::array();
    for (int64_t layer = 0; layer < sizes_.num_layers; ++layer)
      types.push_back(layer % 2 == 0 ? "sliding_attention" : "full_attention");
    config_["layer_types"] = types;
  }

  void add_gemma3() {
    config_["query_pre_attn_scalar"] = gemma_scalar(62);
    config_["rope_local_base_freq"] = file_.real(key("rope.freq_base_swa")).value_or(10000.0);
    const bool slides = window() > 0;
    config_["sliding_window"] = slides ? window() : 4096;
    config_["layer_types"] = slides
                                 ? types_of_layers(6)
                                 : Json(std::vector<std::string>(
                                       static_cast<size_t>(sizes_.num_layers), "full_attention"));
  }

  void add_gemma4() {
    const Gemma4Layers layers = read_gemma4_layers(file_, sizes_.num_layers);
    const auto full = std::find(layers.slides.begin(), layers.slides.end(), false);
    const auto first_full = full - layers.slides.begin();
    const bool keys_are_values = find_(fmt::format("blk.{}.attn_v.weight", first_full)) == nullptr;
    if (find_(kLlama3Divisors) == nullptr)
      throw DataError(fmt::format("there is no {}", kLlama3Divisors),
                      {.file = file_.path().string(),
                       .key = kLlama3Divisors,
                       .hint = "the file is cut, or of an early converter: get it again"});
    const TensorPlace* const inputs = find_("per_layer_token_embd.weight");
    config_.update(gemma4_config(file_, layers, keys_are_values, read_(kLlama3Divisors),
                                 inputs == nullptr ? 0 : inputs->shape.front()));
  }

  // llama.cpp has this epsilon behind attention and feed-forward, and no rotation in layers that
  // see all keys.
  void add_glimmer() {
    constexpr double kAfterEpsilon = 1e-8;
    config_["post_norm_eps"] = kAfterEpsilon;
    config_["output_multiplier"] = number(kLogitScale);
    const double cap = file_.real(key(kLogitCap)).value_or(0);
    config_["final_logit_softcapping"] = cap > 0 ? Json(cap) : Json();
    config_["sliding_window"] = window();
    config_["layer_types"] = types_of_layers(4);
    Json thetas = Json::array();
    for (const Json& type : config_["layer_types"])
      thetas.push_back(type == "sliding_attention" ? config_["rope_theta"] : Json(0));
    config_["layer_rope_theta"] = thetas;
    config_["qk_scale_factor"] = scale_of_queries();
  }

  // The weight of the queries' norms, which is one number, beside keys' norms without a weight.
  double scale_of_queries() const {
    const float scale = weight_of_norm("blk.0.attn_q_norm.weight");
    for (int64_t layer = 0; layer < sizes_.num_layers; ++layer) {
      const std::string queries = fmt::format("blk.{}.attn_q_norm.weight", layer);
      const std::string keys = fmt::format("blk.{}.attn_k_norm.weight", layer);
      if (weight_of_norm(queries) != scale || weight_of_norm(keys) != 1.0f)
        throw DataError(fmt::format("{}, {}: only one scale of queries in all layers is supported",
                                    queries, keys),
                        {.file = file_.path().string(),
                         .key = queries,
                         .hint = "take the model in Hugging Face layout"});
    }
    return shortest_decimal(scale);
  }
  float weight_of_norm(const std::string& name) const {
    const std::vector<float> weights = find_(name) == nullptr ? std::vector<float>() : read_(name);
    if (weights.empty() ||
        std::count(weights.begin(), weights.end(), weights.front()) != std::ssize(weights))
      throw DataError(fmt::format("{}: wanted one number for all features", name),
                      {.file = file_.path().string(),
                       .key = name,
                       .hint = "take the model in Hugging Face layout"});
    return weights.front();
  }

  // Only layers without a window scale their rotation. The rules stand by layer type, because
  // transformers gives sliding layers another theta where config.json has one for the whole model.
  void add_olmo3() {
    config_["sliding_window"] = window();
    config_["layer_types"] = types_of_layers(4);
    const Json theta = config_["rope_theta"];
    Json full = config_.value("rope_scaling", Json{{"rope_type", "default"}});
    full["rope_theta"] = theta;
    const Json sliding = {
        {"rope_type", "default"},
        {"rope_theta", file_.real(key("rope.freq_base_swa")).value_or(theta.get<double>())}};
    config_["rope_parameters"] = {{"full_attention", full}, {"sliding_attention", sliding}};
    config_.erase("rope_theta");
    config_.erase("rope_scaling");
  }

  // A rule is always written: without one, transformers uses its own YaRN rule.
  void add_query_growth() {
    if (!config_.contains("rope_scaling")) config_["rope_scaling"] = {{"rope_type", "default"}};
    Json& rule = config_["rope_scaling"];
    rule["llama_4_scaling_beta"] = number(kQueryGrowth);
    rule["original_max_position_embeddings"] = file_.integer(key(kOriginalLength), 1, kMostContext)
                                                   .value_or(whole("context_length", kMostContext));
  }

  // A scale of 0 means that there is no scale, as in llama.cpp.
  void add_granite() {
    const auto scale = [&](const char* name, double usual) {
      const double told = file_.real(key(name)).value_or(0);
      return told == 0 ? usual : told;
    };
    config_["attention_multiplier"] =
        scale("attention.scale", 1 / std::sqrt(static_cast<double>(sizes_.head_dim)));
    config_["embedding_multiplier"] = scale("embedding_scale", 1.0);
    config_["residual_multiplier"] = scale("residual_scale", 1.0);
    config_["logits_scaling"] = number(kLogitScale);
  }

  void add_delta_net() {
    const ValueHeads& heads = sizes_.value_heads;
    config_["linear_num_key_heads"] = heads.num_key_heads;
    config_["linear_num_value_heads"] = heads.num_value_heads;
    config_["linear_key_head_dim"] = heads.key_head_dim;
    config_["linear_value_head_dim"] = heads.value_head_dim;
    config_["linear_conv_kernel_dim"] = whole(kConvWidth, kMostSize);
    const List* const listed = file_.list(key(kRecurrentLayers));
    refuse_unless(
        listed == nullptr || std::ssize(listed->integers) >= sizes_.num_layers, kRecurrentLayers,
        fmt::format("lists fewer than {} layers, as many as there are", sizes_.num_layers));
    const int64_t interval = file_.integer(key(kFullInterval), 1, kMostLayers).value_or(4);
    Json types = Json::array();
    for (int64_t layer = 0; layer < sizes_.num_layers; ++layer) {
      const bool is_recurrent = listed == nullptr
                                    ? (layer + 1) % interval != 0
                                    : listed->integers[static_cast<size_t>(layer)] != 0;
      types.push_back(is_recurrent ? "linear_attention" : "full_attention");
    }
    config_["layer_types"] = types;
  }

  void add_phi() {
    config_["sliding_window"] = window() > 0 ? Json(window()) : Json();
    const auto original = file_.integer(key(kOriginalLength), 1, kMostContext);
    if (original) config_["original_max_position_embeddings"] = *original;
  }

  // Adds the two lists of divisors, and the factor of cosines and sines if it differs from the
  // factor that follows from the lengths.
  void add_longrope() {
    config_["rope_scaling"] = {{"type", "longrope"},
                               {"short_factor", divisors(kShortDivisors)},
                               {"long_factor", divisors(kLongDivisors)}};
    const auto original =
        static_cast<double>(file_.require_integer(key(kOriginalLength), 2, kMostContext));
    const double factor = static_cast<double>(whole("context_length", kMostContext)) / original;
    const double usual = factor <= 1 ? 1.0 : std::sqrt(1.0 + std::log(factor) / std::log(original));
    const double told = file_.real(key(kAttnFactor)).value_or(1.0);
    if (std::fabs(told - usual) > 1e-6 * usual) config_["rope_scaling"]["attention_factor"] = told;
  }

  Json divisors(const char* name) const {
    const TensorPlace* const place = find_(name);
    if (place == nullptr || place->shape != std::vector<int64_t>{rotated() / 2})
      throw DataError(fmt::format("{}: wanted a number for each of {} rotated pairs of features",
                                  name, rotated() / 2),
                      {.file = file_.path().string(),
                       .key = name,
                       .hint = "take the model in Hugging Face layout"});
    Json numbers = Json::array();
    for (const float divisor : read_(name)) numbers.push_back(shortest_decimal(divisor));
    return numbers;
  }

  void add_rope() {
    const double usual = family_.architecture == "gemma3" ? 1e6 : 10000.0;
    const double theta = file_.real(key("rope.freq_base")).value_or(usual);
    config_["rope_theta"] = theta;
    if (find_(kLlama3Divisors) != nullptr) {
      add_llama3_rope(theta);
      return;
    }
    if (find_(kShortDivisors) != nullptr || find_(kLongDivisors) != nullptr) {
      add_longrope();
      return;
    }
    const std::string kind = file_.text(key("rope.scaling.type")).value_or("");
    const double old_factor = file_.real(key("rope.scale_linear")).value_or(1.0);
    const double factor = file_.real(key("rope.scaling.factor")).value_or(old_factor);
    if (kind == "none" || ((kind.empty() || kind == "linear") && (factor == 1.0 || factor == 0.0)))
      return;
    refuse_unless(kind.empty() || kind == "linear" || kind == "yarn", "rope.scaling.type",
                  fmt::format("`{:.60}` is not supported; linear and yarn are", kind));
    config_["rope_scaling"] = {{"rope_type", kind.empty() ? "linear" : kind}, {"factor", factor}};
    if (kind != "yarn") return;
    Json& rule = config_["rope_scaling"];
    const auto original = file_.integer(key(kOriginalLength), 1, kMostContext);
    if (original) rule["original_max_position_embeddings"] = *original;
    // llama.cpp's converter writes these keys, which llama.cpp reads only in some architectures.
    for (const auto& [name, own] :
         {std::pair(kYarnBetaFast, "beta_fast"), std::pair(kYarnBetaSlow, "beta_slow"),
          std::pair(kYarnAttnFactor, "attention_factor")})
      if (const auto value = file_.real(key(name))) rule[own] = *value;
    const double multiplier = file_.real(key(kYarnLogMultiplier)).value_or(0);
    if (multiplier == 0) return;
    rule["mscale"] = 1.0;  // llama.cpp takes it for 1 too
    rule["mscale_all_dim"] = multiplier;
  }

  std::optional<Llama3Rope> told_rope() const {
    const List* const numbers = file_.list(kRopeRuleKey);
    if (numbers == nullptr || numbers->reals.size() != 4) return std::nullopt;
    const std::vector<double>& told = numbers->reals;
    const bool are_usable =
        std::all_of(told.begin(), told.end(), [](double number) { return number > 0; }) &&
        told[2] > told[1] && told[3] < static_cast<double>(kMostContext);
    if (!are_usable) return std::nullopt;
    return Llama3Rope{.factor = told[0],
                      .low_freq_factor = told[1],
                      .high_freq_factor = told[2],
                      .original_max_positions = std::llround(told[3])};
  }

  void add_llama3_rope(double theta) {
    const TensorPlace* const place = find_(kLlama3Divisors);
    const auto rule = place->shape == std::vector<int64_t>{sizes_.head_dim / 2}
                          ? rule_of_divisors(read_(kLlama3Divisors), theta, told_rope())
                          : std::nullopt;
    if (!rule)
      throw DataError(
          fmt::format("{} holds other divisors than Llama 3's rule gives", kLlama3Divisors),
          {.file = file_.path().string(),
           .key = kLlama3Divisors,
           .hint = "take the model in Hugging Face layout"});
    if (rule->factor == 1.0) return;
    config_["rope_scaling"] = {{"rope_type", "llama3"},
                               {"factor", rule->factor},
                               {"low_freq_factor", rule->low_freq_factor},
                               {"high_freq_factor", rule->high_freq_factor},
                               {"original_max_position_embeddings", rule->original_max_positions}};
  }

  const File& file_;
  const Family& family_;
  const FindPlace& find_;
  const ReadValues& read_;
  Sizes sizes_;
  std::string prefix_;
  Json config_;
};

// The value of a key that holds one number, or a list with the same number for each layer.
int64_t same_in_all_layers(const File& file, const std::string& key, int64_t most) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end() || !std::holds_alternative<List>(found->second))
    return file.require_integer(key, 1, most);
  const std::vector<int64_t>& each = std::get<List>(found->second).integers;
  const std::set<int64_t> different(each.begin(), each.end());
  if (different.size() != 1 || *different.begin() < 1 || *different.begin() > most)
    file.fail(key, "layers that differ are not supported");
  return *different.begin();
}

// Null: there is no such family.
const Family* family_of_file(const File& file, const std::string& architecture) {
  const Family* usual = nullptr;
  for (const Family& family : families()) {
    if (family.architecture != architecture) continue;
    if (family.told_by.empty()) {
      if (usual == nullptr) usual = &family;
    } else if (file.real(architecture + "." + std::string(family.told_by)).value_or(0) != 0) {
      return &family;
    }
  }
  return usual;
}

}  // namespace

const Family& require_family(const File& file) {
  const std::string architecture = file.require_text("general.architecture");
  const std::string type = file.text("general.type").value_or("model");
  if (type != "model")
    throw DataError(fmt::format("wanted a model, found a file of the type `{:.60}`", type),
                    {.file = file.path().string(),
                     .key = "general.type",
                     .hint = type == "adapter"
                                 ? "name its base as the model, and this file with --adapter; "
                                   "`convoy models convert FILE.gguf FOLDER --base MODEL` makes a "
                                   "PEFT adapter of it"
                                 : "name a model's GGUF file"});
  if (const Family* const family = family_of_file(file, architecture)) return *family;
  std::set<std::string_view> known;
  for (const Family& family : families()) known.insert(family.architecture);
  throw DataError(fmt::format("general.architecture: `{:.60}` is not supported; there are {}",
                              architecture, fmt::join(known, ", ")),
                  {.file = file.path().string(),
                   .key = "general.architecture",
                   .hint = "take a model of one of these architectures, or of a family of `convoy "
                           "models list` in Hugging Face layout"});
}

namespace {

ValueHeads read_value_heads(const File& file, const std::string& prefix) {
  const auto whole = [&](const char* name) {
    return file.require_integer(prefix + name, 1, kMostSize);
  };
  ValueHeads heads{.num_key_heads = whole(kKeyHeads),
                   .num_value_heads = whole(kValueHeads),
                   .key_head_dim = whole(kKeyHeadDim)};
  if (heads.num_value_heads % heads.num_key_heads != 0)
    file.fail(prefix + kValueHeads, fmt::format("{} heads are no multiple of {} key heads",
                                                heads.num_value_heads, heads.num_key_heads));
  const int64_t width = whole(kValueWidth);
  if (width % heads.num_value_heads != 0)
    file.fail(prefix + kValueWidth,
              fmt::format("{} features are no multiple of {} heads", width, heads.num_value_heads));
  heads.value_head_dim = width / heads.num_value_heads;
  return heads;
}

}  // namespace

Sizes read_sizes(const File& file) {
  const std::string architecture = file.require_text("general.architecture");
  const std::string prefix = architecture + ".";
  Sizes sizes{.num_layers = file.require_integer(prefix + "block_count", 1, kMostLayers),
              .num_heads = same_in_all_layers(file, prefix + "attention.head_count", kMostSize)};
  sizes.further_layers = file.integer(prefix + kFurtherLayers, 0, sizes.num_layers - 1).value_or(0);
  sizes.num_layers -= sizes.further_layers;
  const Family* const family = family_of_file(file, architecture);
  if (family != nullptr && family->delta_net) sizes.value_heads = read_value_heads(file, prefix);
  if (architecture == kGemma4) {
    const Gemma4Layers layers = read_gemma4_layers(file, sizes.num_layers);
    sizes.num_kv_heads = layers.kv_heads;
    sizes.head_dim = layers.head_dim;
    return sizes;
  }
  const std::string kv_key = prefix + "attention.head_count_kv";
  sizes.num_kv_heads = file.metadata().contains(kv_key)
                           ? same_in_all_layers(file, kv_key, kMostSize)
                           : sizes.num_heads;
  const int64_t hidden = file.require_integer(prefix + "embedding_length", 1, kMostSize);
  sizes.head_dim = file.integer(prefix + "attention.key_length", 1, kMostSize)
                       .value_or(hidden / sizes.num_heads);
  const int64_t values =
      file.integer(prefix + "attention.value_length", 1, kMostSize).value_or(sizes.head_dim);
  if (values != sizes.head_dim)
    file.fail(prefix + "attention.value_length",
              fmt::format("{} differs from the keys' {}", values, sizes.head_dim));
  if (sizes.head_dim < 2 || sizes.head_dim % 2 != 0)
    file.fail(prefix + "attention.head_count",
              fmt::format("heads of {} features cannot be rotated in pairs", sizes.head_dim));
  return sizes;
}

std::string config_text(const File& file, const Family& family, const FindPlace& find,
                        const ReadValues& read) {
  return Config(file, family, find, read).text();
}

std::string generation_config_text(const File& file) {
  Json config = Json::object();
  const auto put = [&](const char* name, const char* key) {
    if (const auto id = token_id(file, key)) config[name] = *id;
  };
  put("bos_token_id", "tokenizer.ggml.bos_token_id");
  const std::vector<int64_t> ends = end_ids(file);
  if (!ends.empty()) config["eos_token_id"] = ends.size() == 1 ? Json(ends[0]) : Json(ends);
  put("pad_token_id", "tokenizer.ggml.padding_token_id");
  return config.dump(2) + "\n";
}

std::vector<std::string> unread_keys(const File& file) {
  const std::string prefix = file.require_text("general.architecture") + ".";
  std::vector<std::string> unread;
  for (const auto& [key, value] : file.metadata()) {
    if (!key.starts_with(prefix)) continue;
    const std::string name = key.substr(prefix.size());
    if (std::find(kReadKeys.begin(), kReadKeys.end(), name) == kReadKeys.end())
      unread.push_back(key);
  }
  return unread;
}

}  // namespace convoy::gguf
