// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/gguf_export.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <memory>
#include <numeric>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/encode.h"
#include "convoy/core/io/gguf/gemma4_config.h"
#include "convoy/core/io/gguf/gguf_family.h"
#include "convoy/core/io/gguf/rope_divisors.h"
#include "convoy/core/io/gguf/tokenizer_metadata.h"
#include "convoy/core/io/gguf/value_heads.h"
#include "convoy/core/io/gguf/writer.h"
#include "convoy/model/architecture/families/decoder_config.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/gguf_layers.h"

namespace convoy::models {
namespace {

using architecture::DecoderSpec;
using architecture::LayerSpec;
using architecture::RopeKind;
using architecture::RopeSpec;

constexpr io::JsonLimits kTokenizerLimits = {.max_bytes = int64_t{128} << 20,
                                             .max_values = 16'000'000};

// The number n such that layer i slides unless i + 1 is a multiple of n. 0: there is no such
// number.
int64_t sliding_pattern(const DecoderSpec& spec) {
  int64_t pattern = 0;
  for (int64_t layer = 0; layer < spec.num_layers() && pattern == 0; ++layer)
    if (spec.layers[layer].sliding_window == 0) pattern = layer + 1;
  if (pattern == 0) return 0;
  for (int64_t layer = 0; layer < spec.num_layers(); ++layer)
    if ((spec.layers[layer].sliding_window > 0) != ((layer + 1) % pattern != 0)) return 0;
  return pattern;
}

bool slides(const DecoderSpec& spec) {
  return std::any_of(spec.layers.begin(), spec.layers.end(),
                     [](const LayerSpec& layer) { return layer.sliding_window > 0; });
}

bool is_one_of(const DecoderSpec& spec, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), spec.family) != names.end();
}

// Biases that llama.cpp would leave out.
bool has_lost_biases(const DecoderSpec& spec) {
  if (is_one_of(spec, {"llama", "granite"})) return false;
  return spec.attention_output_bias || spec.ffn_bias ||
         (spec.qkv_bias && !is_one_of(spec, {"qwen2", "seed_oss", "glm", "glm4"}));
}

// Windows that llama.cpp leaves out, which a notice says.
bool has_lost_windows(const DecoderSpec& spec) {
  return slides(spec) && is_one_of(spec, {"mistral", "ministral3", "phi3"});
}

bool is_gemma(const DecoderSpec& spec) {
  return is_one_of(spec, {"gemma", "gemma2", "gemma3", "gemma4"});
}

std::string gemma_scale_refusal(const DecoderSpec& spec, int64_t layers_of_27b) {
  const int64_t divisor =
      spec.num_layers() == layers_of_27b ? spec.hidden_size / spec.num_heads : spec.head_dim;
  if (std::fabs(spec.attention_scale * std::sqrt(static_cast<double>(divisor)) - 1) <= 1e-6)
    return "";
  return fmt::format("llama.cpp divides queries by the root of {}, not by query_pre_attn_scalar",
                     divisor);
}

std::string gemma2_refusal(const DecoderSpec& spec) {
  if (std::string refusal = gemma_scale_refusal(spec, 46); !refusal.empty()) return refusal;
  if (spec.score_cap == 0 || spec.logit_cap == 0)
    return "llama.cpp has soft caps on scores and logits in this architecture, and this model not";
  for (int64_t layer = 0; layer < spec.num_layers(); ++layer)
    if ((spec.layers[layer].sliding_window > 0) != (layer % 2 == 0))
      return "llama.cpp lets every second layer slide from the first on, and this model others";
  return "";
}

std::string gemma3_refusal(const DecoderSpec& spec) {
  if (std::string refusal = gemma_scale_refusal(spec, 62); !refusal.empty()) return refusal;
  if (spec.logit_cap != 0) return "llama.cpp has no soft cap on logits in this architecture";
  if (spec.ropes[1].kind != RopeKind::Default)
    return "llama.cpp does not scale the rotation of sliding layers";
  if (slides(spec) && sliding_pattern(spec) == 0)
    return "llama.cpp has no such order of sliding and full layers";
  return "";
}

std::string smollm3_refusal(const DecoderSpec& spec) {
  constexpr int64_t kInterval = 4;
  for (int64_t layer = 0; layer < spec.num_layers(); ++layer)
    if ((spec.layers[layer].rope == architecture::kNoRope) != ((layer + 1) % kInterval == 0))
      return "llama.cpp leaves the rotation out of every fourth layer, and this model of others";
  return "";
}

std::string olmo3_refusal(const DecoderSpec& spec) {
  if (spec.ropes[1].kind != RopeKind::Default)
    return "llama.cpp does not scale the rotation of sliding layers";
  if (spec.ropes[1].theta != spec.ropes[0].theta)
    return "llama.cpp rotates all layers of this architecture by one rope_theta";
  return "";
}

bool has_usual_scale(const RopeSpec& rope) {
  const double scale = rope.factor <= 1 ? 1.0 : 0.1 * std::log(rope.factor) + 1.0;
  return std::abs(rope.table_scale - scale) < 1e-6;
}

// llama.cpp computes bounds and scale of YaRN by itself: true where these are the same. For
// Ministral 3 it reads the bounds, and whether there is a scale.
bool is_usual_yarn(const DecoderSpec& spec) {
  const RopeSpec& rope = spec.ropes.front();
  const RopeSpec usual;
  if (is_gemma(spec) || !rope.whole_features) return false;
  if (spec.family == "ministral3") return has_usual_scale(rope) || rope.table_scale == 1.0;
  return rope.beta_fast == usual.beta_fast && rope.beta_slow == usual.beta_slow &&
         has_usual_scale(rope);
}

std::string rotation_refusal(const DecoderSpec& spec) {
  const RopeKind kind = spec.ropes.front().kind;
  if (kind == RopeKind::Yarn && !is_usual_yarn(spec))
    return "a GGUF file holds only the factor and the original length of YaRN";
  if (kind == RopeKind::Llama3 && !is_one_of(spec, {"llama", "mistral", "granite"}))
    return "llama.cpp has Llama 3's rotation only in its own architecture and Granite's";
  if (kind == RopeKind::LongRope && spec.family != "phi3")
    return "Convoy writes longrope only for Phi";
  if (kind != RopeKind::Default && kind != RopeKind::LongRope &&
      is_one_of(spec, {"phi3", "glm", "glm4", "qwen3_5"}))
    return "llama.cpp's converter scales no rotation of this architecture by such a rule";
  return "";
}

gguf::ValueHeads value_heads_of(const DecoderSpec& spec) {
  return {.num_key_heads = spec.delta_net.num_key_heads,
          .num_value_heads = spec.delta_net.num_value_heads,
          .key_head_dim = spec.delta_net.key_head_dim,
          .value_head_dim = spec.delta_net.value_head_dim};
}

// The number n such that every n-th layer has attention. 0: there is no such number.
int64_t attention_interval(const DecoderSpec& spec) {
  const auto has_attention = [&](int64_t layer) {
    return spec.layers[layer].mixer == architecture::TokenMixer::Attention;
  };
  int64_t interval = 1;
  while (interval <= spec.num_layers() && !has_attention(interval - 1)) ++interval;
  for (int64_t layer = 0; layer < spec.num_layers(); ++layer)
    if (has_attention(layer) != ((layer + 1) % interval == 0)) return 0;
  return interval;
}

std::string delta_net_refusal(const DecoderSpec& spec) {
  if (spec.delta_net.key_head_dim != spec.delta_net.value_head_dim)
    return "llama.cpp needs values as wide as keys in layers of Gated DeltaNet";
  if (attention_interval(spec) == 0)
    return "llama.cpp has attention in every so-many-th layer of this architecture, and this model "
           "in others";
  return "";
}

// Why llama.cpp has no model of this shape in its architecture; empty: it has.
std::string shape_refusal(const DecoderSpec& spec) {
  if (is_one_of(spec, {"olmo2", "olmo3", "phi3", "glm"}) &&
      spec.num_heads * spec.head_dim != spec.hidden_size)
    return "llama.cpp needs heads that share hidden_size in this architecture";
  if (is_one_of(spec, {"olmo2", "olmo3", "muse_glimmer"}) && spec.tied_head)
    return "llama.cpp has no head that is the embedding in this architecture";
  if (spec.family == "gemma" && !spec.tied_head)
    return "llama.cpp has the embedding as the head in this architecture";
  return "";
}

// The model as metadata, under the keys of its architecture.
class ModelMetadata {
 public:
  ModelMetadata(const gguf::Family& family, const DecoderSpec& spec, gguf::Metadata& metadata)
      : prefix_(std::string(family.architecture) + "."), spec_(spec), metadata_(metadata) {}

  void add() {
    number("block_count", spec_.num_layers());
    number("context_length", spec_.max_positions);
    number("embedding_length", spec_.hidden_size);
    number("attention.head_count", spec_.num_heads);
    metadata_.real(prefix_ + "attention.layer_norm_rms_epsilon", spec_.norm_epsilon);
    number("vocab_size", spec_.vocab_size);
    if (spec_.family == "gemma4")
      add_gemma4_layers(prefix_, spec_, metadata_);
    else
      add_layers();
    const RopeSpec& rope = spec_.ropes.front();
    metadata_.real(prefix_ + "rope.freq_base", rope.theta);
    if (rope.kind == RopeKind::Llama3)
      metadata_.reals(gguf::kRopeRuleKey, {rope.factor, rope.low_freq_factor, rope.high_freq_factor,
                                           static_cast<double>(rope.original_max_positions)});
    if (rope.kind == RopeKind::Linear) {
      metadata_.text(prefix_ + "rope.scaling.type", "linear");
      metadata_.real(prefix_ + "rope.scaling.factor", rope.factor);
    }
    if (rope.kind == RopeKind::Yarn) {
      metadata_.text(prefix_ + "rope.scaling.type", "yarn");
      metadata_.real(prefix_ + "rope.scaling.factor", rope.factor);
      number("rope.scaling.original_context_length", rope.original_max_positions);
    }
    if (rope.kind == RopeKind::LongRope) {
      number("rope.scaling.original_context_length", rope.original_max_positions);
      metadata_.real(prefix_ + "rope.scaling.attn_factor", rope.table_scale);
    }
    if (spec_.family == "gemma2") add_gemma2();
    if (spec_.family == "gemma3") add_windows();
    if (spec_.family == "olmo3") list_windows();
    if (spec_.family == "ministral3") add_query_growth();
    if (spec_.family == "phi3")  // 0 says that there is none
      number("attention.sliding_window", spec_.layers.front().sliding_window);
    if (spec_.family == "granite") add_scales();
    if (spec_.family == "qwen3_5") add_delta_net();
    if (spec_.family == "muse_glimmer") add_glimmer_layers(prefix_, spec_, metadata_);
  }

 private:
  void add_layers() {
    number("feed_forward_length", spec_.ffn_size);
    number("attention.head_count_kv", spec_.num_kv_heads);
    number("attention.key_length", spec_.head_dim);
    number("attention.value_length", spec_.head_dim);
    const int64_t rotated = spec_.ropes.front().rotated_features;
    number("rope.dimension_count", rotated > 0 ? rotated : spec_.head_dim);
  }

  void number(const std::string& name, int64_t value) { metadata_.number(prefix_ + name, value); }

  void add_scales() {
    metadata_.real(prefix_ + "attention.scale", spec_.attention_scale);
    metadata_.real(prefix_ + "embedding_scale", spec_.embedding_scale);
    metadata_.real(prefix_ + "residual_scale", spec_.residual_scale);
    metadata_.real(prefix_ + "logit_scale", 1.0 / spec_.logit_scale);  // llama.cpp divides by it
  }

  void add_delta_net() {
    const architecture::DeltaNetSpec& sizes = spec_.delta_net;
    number("ssm.conv_kernel", sizes.conv_width);
    number("ssm.state_size", sizes.key_head_dim);
    number("ssm.group_count", sizes.num_key_heads);
    number("ssm.time_step_rank", sizes.num_value_heads);
    number("ssm.inner_size", sizes.value_width());
    number("full_attention_interval", attention_interval(spec_));
    // The pairs that turn by time, height and width in turn, which are one position in text.
    const int64_t pairs = spec_.ropes.front().rotated_features / 2;
    metadata_.numbers(prefix_ + "rope.dimension_sections",
                      {(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0});
  }

  void add_gemma2() {
    metadata_.real(prefix_ + "attn_logit_softcapping", spec_.score_cap);
    metadata_.real(prefix_ + "final_logit_softcapping", spec_.logit_cap);
    number("attention.sliding_window", spec_.layers.front().sliding_window);
  }

  // Lists every layer by itself, as the converter does.
  void list_windows() {
    if (!slides(spec_)) return;
    add_window();
    std::vector<bool> sliding;
    for (const LayerSpec& layer : spec_.layers) sliding.push_back(layer.sliding_window > 0);
    metadata_.truths(prefix_ + "attention.sliding_window_pattern", sliding);
  }

  // With YaRN original_context_length is written already: the growth begins at the same length.
  void add_query_growth() {
    const RopeSpec& rope = spec_.ropes.front();
    if (rope.kind == RopeKind::Yarn) {
      metadata_.real(prefix_ + "rope.scaling.yarn_beta_fast", rope.beta_fast);
      metadata_.real(prefix_ + "rope.scaling.yarn_beta_slow", rope.beta_slow);
      if (!has_usual_scale(rope)) metadata_.real(prefix_ + "rope.scaling.yarn_log_multiplier", 1.0);
    } else if (spec_.query_growth > 0) {
      number("rope.scaling.original_context_length", spec_.query_growth_positions);
    }
    if (spec_.query_growth > 0)
      metadata_.real(prefix_ + "attention.temperature_scale", spec_.query_growth);
  }

  void add_window() {
    for (const LayerSpec& layer : spec_.layers) {
      if (layer.sliding_window == 0) continue;
      number("attention.sliding_window", layer.sliding_window);
      return;
    }
  }

  void add_windows() {
    metadata_.real(prefix_ + "rope.freq_base_swa", spec_.ropes[1].theta);
    if (!slides(spec_)) return;
    constexpr int64_t kUsualPattern = 6;
    add_window();
    const int64_t pattern = sliding_pattern(spec_);
    if (pattern != kUsualPattern) number("attention.sliding_window_pattern", pattern);
  }

  std::string prefix_;
  const DecoderSpec& spec_;
  gguf::Metadata& metadata_;
};

// Tells how many tensors are written.
struct Work {
  std::function<void(int64_t done, int64_t total)> advance;
  int64_t done = 0;
  int64_t total = 0;
};

// A weight on its way into the file.
struct Weight {
  std::string name;
  int64_t rows = 1;
  int64_t row_values = 1;
  gguf::TensorType type = gguf::TensorType::F32;
  int64_t head_dim = 0;  // for rows that change their order inside a head; 0: they do not
  gguf::Stored stored_as = gguf::Stored::AsTheyAre;
  // Gated DeltaNet: the rows or columns whose heads change their order.
  std::optional<gguf::ValueHeadPart> part = {};
  gguf::ValueHeads heads = {};
};

class WeightWriter {
 public:
  WeightWriter(const ReadElements& read, const GgufExport& options, std::shared_ptr<Work> work)
      : read_(read), options_(options), work_(std::move(work)) {}

  void write(const Weight& weight, const io::ByteSink& sink) const {
    if (weight.part && !weight.part->columns) {
      const auto& [columns, first, width] = *weight.part;
      write_run(weight, 0, first, sink);
      for (int64_t head = 0; head < weight.heads.num_value_heads; ++head)
        write_run(weight, first + weight.heads.own_head(head) * width, width, sink);
    } else {
      write_run(weight, 0, weight.rows, sink);
    }
    work_->advance(++work_->done, work_->total);
  }

 private:
  // Writes the rows from `first` on, in pieces.
  void write_run(const Weight& weight, int64_t first, int64_t rows,
                 const io::ByteSink& sink) const {
    // Rows change places inside their head.
    const int64_t unit = std::max<int64_t>(weight.head_dim, 1);
    const int64_t fit = std::max<int64_t>(1, options_.piece_values / weight.row_values / unit);
    for (int64_t row = 0; row < rows; row += fit * unit)
      write_rows(weight, first + row, std::min(fit * unit, rows - row), sink);
  }

  void write_rows(const Weight& weight, int64_t first, int64_t rows,
                  const io::ByteSink& sink) const {
    at::Tensor values = at::empty({rows * weight.row_values}, at::kFloat);
    read_(weight.name, first * weight.row_values, values);
    if (weight.stored_as == gguf::Stored::PlusOne) values.add_(1.0);
    if (weight.stored_as == gguf::Stored::MinusExp) values.exp_().neg_();
    if (weight.part && weight.part->columns)
      values = values.view({rows, weight.row_values})
                   .index_select(1, columns_in_file(weight))
                   .view({-1});
    if (weight.head_dim > 0)
      values =
          rows_in_file_order(values.view({rows, weight.row_values}), weight.head_dim).view({-1});
    refuse_lost(weight, values);
    const gguf::TensorTypeInfo& info = gguf::info_of(weight.type);
    std::vector<std::byte> blocks(
        static_cast<size_t>(values.numel() / info.block_values * info.block_bytes));
    gguf::encode(weight.type, {values.const_data_ptr<float>(), static_cast<size_t>(values.numel())},
                 blocks);
    sink(blocks);
  }

  // By column of the file: its column in transformers' order.
  static at::Tensor columns_in_file(const Weight& weight) {
    std::vector<int64_t> columns(static_cast<size_t>(weight.row_values));
    for (int64_t own = 0; own < weight.row_values; ++own)
      columns[static_cast<size_t>(weight.part->file_place(weight.heads, own))] = own;
    return at::tensor(columns);
  }

  // The scales of quantised types are f16, so these types have the range of f16.
  void refuse_lost(const Weight& weight, const at::Tensor& values) const {
    using gguf::TensorType;
    if (weight.type == TensorType::F32 || weight.type == TensorType::BF16) return;
    constexpr double kMostHalf = 65504.0;
    const double most = values.abs().max().item<double>();
    if (most <= kMostHalf) return;
    throw NumericError(fmt::format("{} holds {:g}, which {} cannot hold", weight.name, most,
                                   gguf::info_of(weight.type).name),
                       {.key = weight.name, .hint = "write the model as bf16 or f32"});
  }

  const ReadElements& read_;
  const GgufExport& options_;
  std::shared_ptr<Work> work_;
};

gguf::TensorToWrite tensor_of_numbers(std::string name, std::vector<float> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  return {.name = std::move(name),
          .type = gguf::TensorType::F32,
          .shape = {count},
          .produce = [numbers = std::move(numbers)](const io::ByteSink& sink) {
            sink(std::as_bytes(std::span(numbers)));
          }};
}

// The tensors that stand for numbers of config.json.
std::vector<gguf::TensorToWrite> tensors_of_config(const DecoderSpec& spec) {
  if (spec.family == "muse_glimmer") {
    std::vector<gguf::TensorToWrite> tensors;
    for (NumbersAsTensor& norm : glimmer_norms(spec))
      tensors.push_back(tensor_of_numbers(std::move(norm.name), std::move(norm.values)));
    return tensors;
  }
  const RopeSpec& rope = spec.ropes.front();
  if (rope.kind == RopeKind::Proportional) {
    NumbersAsTensor divisors = gemma4_divisors(spec);
    return {tensor_of_numbers(std::move(divisors.name), std::move(divisors.values))};
  }
  if (rope.kind == RopeKind::Llama3)
    return {tensor_of_numbers(
        gguf::kLlama3Divisors,
        gguf::rope_divisors({.factor = rope.factor,
                             .low_freq_factor = rope.low_freq_factor,
                             .high_freq_factor = rope.high_freq_factor,
                             .original_max_positions = rope.original_max_positions},
                            rope.theta, spec.head_dim))};
  if (rope.kind != RopeKind::LongRope) return {};
  const auto floats = [](const std::vector<double>& numbers) {
    return std::vector<float>(numbers.begin(), numbers.end());
  };
  return {tensor_of_numbers(gguf::kLongDivisors, floats(rope.long_divisors)),
          tensor_of_numbers(gguf::kShortDivisors, floats(rope.divisors))};
}

// Notices of tensors that are not written as the type that the rule wants: both types, and how many
// tensors.
std::vector<std::string> fallback_notices(
    const std::map<std::pair<gguf::TensorType, gguf::TensorType>, int64_t>& fallbacks) {
  std::vector<std::string> notices;
  for (const auto& [types, count] : fallbacks)
    notices.push_back(fmt::format(
        "{} tensor{} written as {}: the rows are no multiple of {}'s blocks of {} values", count,
        count == 1 ? " is" : "s are", gguf::info_of(types.second).name,
        gguf::info_of(types.first).name, gguf::info_of(types.first).block_values));
  return notices;
}

void add_weights(const gguf::Family& family, const DecoderSpec& spec, const GgufExport& options,
                 const std::shared_ptr<const WeightWriter>& writer,
                 std::vector<gguf::TensorToWrite>& tensors, std::vector<std::string>& notices) {
  const gguf::TypeChoice choice{.num_layers = spec.num_layers(),
                                .tied_head = spec.tied_head,
                                .shares_kv_heads = spec.num_heads != spec.num_kv_heads};
  std::map<std::pair<gguf::TensorType, gguf::TensorType>, int64_t> fallbacks;
  for (const architecture::ParameterDeclaration& parameter :
       architecture::declare_parameters(spec)) {
    const auto name = gguf::file_name_of(family, parameter.name);
    CONVOY_INVARIANT(name.has_value(), "no name in GGUF for {}", parameter.name);
    const gguf::ChosenType chosen = gguf::choose_type(options.type, choice, *name, parameter.shape);
    if (chosen.type != chosen.wanted) ++fallbacks[{chosen.wanted, chosen.type}];
    Weight weight{.name = parameter.name, .type = chosen.type};
    std::vector<int64_t> shape = parameter.shape;
    if (shape.size() == 3) shape.erase(shape.begin() + 1);  // a convolution's only input channel
    const bool has_delta_net = spec.delta_net.num_value_heads > 0;
    if (has_delta_net) {
      weight.heads = value_heads_of(spec);
      weight.part = gguf::value_head_part(weight.heads, parameter.name);
    }
    const bool moves_rows = gguf::rows_of(family, parameter.name) != gguf::Rows::AsTheyAre;
    if (shape.size() == 2) {
      weight.rows = shape[0];
      weight.row_values = shape[1];
    } else if (moves_rows || weight.part) {
      weight.rows = shape[0];  // a bias whose rows change their order
    } else {
      weight.row_values = shape[0];
    }
    if (moves_rows) weight.head_dim = spec.head_dim;
    weight.stored_as = gguf::stored_as(family, parameter.name);
    tensors.push_back(
        {.name = *name,
         .type = chosen.type,
         .shape = shape,
         .produce = [writer, weight](const io::ByteSink& sink) { writer->write(weight, sink); }});
  }
  for (std::string& notice : fallback_notices(fallbacks)) notices.push_back(std::move(notice));
}

gguf::TokenizerFiles tokenizer_files(const io::ModelFolder& source, const GgufExport& options) {
  const auto json = [&](const char* name) {
    const auto text = source.text(name);
    return text ? io::parse_json(*text, (source.path() / name).string(), kTokenizerLimits)
                : io::Json::object();
  };
  const std::vector<int32_t> ends = ends_in_order(source, options.ends);
  return {.tokenizer = json("tokenizer.json"),
          .tokenizer_config = json("tokenizer_config.json"),
          .chat_template = options.chat_template,
          .ends = {ends.begin(), ends.end()},
          .place = source.path().string()};
}

// Returns for each row of the file the row in transformers' order.
std::vector<int64_t> places_in_file(int64_t rows, int64_t head_dim) {
  std::vector<int64_t> places(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) places[gguf::permuted_row(row, head_dim)] = row;
  return places;
}

}  // namespace

at::Tensor rows_in_file_order(const at::Tensor& rows, int64_t head_dim) {
  return rows.index_select(0, at::tensor(places_in_file(rows.size(0), head_dim)));
}

std::vector<int32_t> ends_in_order(const io::ModelFolder& source, std::vector<int32_t> first) {
  for (const int32_t id : families::end_token_ids(source))
    if (std::find(first.begin(), first.end(), id) == first.end()) first.push_back(id);
  return first;
}

std::string gguf_refusal(const DecoderSpec& spec) {
  if (has_lost_biases(spec)) return "llama.cpp has no biases in this architecture";
  const bool has_gelu = spec.activation == architecture::Activation::GeluTanh;
  if (has_gelu != is_gemma(spec)) return "llama.cpp has another activation in this architecture";
  if (std::string refusal = rotation_refusal(spec); !refusal.empty()) return refusal;
  if (std::string refusal = shape_refusal(spec); !refusal.empty()) return refusal;
  if (spec.family == "qwen3_5") return delta_net_refusal(spec);
  if (spec.family == "gemma2") return gemma2_refusal(spec);
  if (spec.family == "gemma3") return gemma3_refusal(spec);
  if (spec.family == "gemma4") return gemma4_refusal(spec);
  if (spec.family == "muse_glimmer") return glimmer_refusal(spec);
  if (spec.family == "olmo3") return olmo3_refusal(spec);
  if (slides(spec) && !has_lost_windows(spec))
    return "llama.cpp has no sliding windows in this architecture";
  if (spec.family == "smollm3") return smollm3_refusal(spec);
  return "";
}

std::vector<std::string> export_gguf(const io::ModelFolder& source, const ReadElements& read,
                                     const std::filesystem::path& path, const GgufExport& options) {
  const DecoderSpec spec = families::read_decoder_spec(source);
  const gguf::Family* const family = gguf::family_of_model_type(spec.family);
  const std::string refusal = family == nullptr
                                  ? "Convoy has no names in GGUF for the tensors of this family"
                                  : gguf_refusal(spec);
  if (!refusal.empty())
    throw DataError(
        fmt::format("this model cannot be written as GGUF: {}", refusal),
        {.file = source.path().string(),
         .hint = "use the model in its own folder, with `convoy generate` or `convoy serve`"});
  std::vector<std::string> notices;
  if (has_lost_windows(spec))
    notices.push_back(
        fmt::format("llama.cpp has no sliding windows in this architecture: beyond {} tokens its "
                    "texts differ",
                    spec.layers.front().sliding_window));

  gguf::Metadata metadata;
  metadata.text("general.architecture", family->architecture);
  metadata.text("general.type", "model");
  metadata.text("general.name", options.name);
  metadata.number("general.file_type", options.type.number);
  if (gguf::info_of(options.type.usual).block_values > 1)
    metadata.number("general.quantization_version", 2);
  ModelMetadata(*family, spec, metadata).add();
  gguf::TokenizerFiles tokenizer = tokenizer_files(source, options);
  tokenizer.lists_merges = family->architecture == gguf::kGemma4;
  for (std::string& notice : gguf::add_tokenizer(tokenizer, spec.vocab_size, metadata))
    notices.push_back(std::move(notice));

  const auto work = std::make_shared<Work>(Work{.advance = options.advance});
  const auto writer = std::make_shared<const WeightWriter>(read, options, work);
  std::vector<gguf::TensorToWrite> tensors = tensors_of_config(spec);
  add_weights(*family, spec, options, writer, tensors, notices);
  work->total = static_cast<int64_t>(tensors.size());
  gguf::write_file(path, metadata, tensors);
  return notices;
}

}  // namespace convoy::models
