// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/memory_estimate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/model/sizing/generation_memory.h"

namespace convoy::sizing {

using architecture::declare_parameters;
using architecture::DecoderSpec;
using architecture::ParameterDeclaration;

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// LibTorch, the tokenizer and buffers of a rank, measured with tally-3m.
constexpr int64_t kProgramBytes = 135 * kMiB + kStepCodeBytes;
// Context, loaded kernels and the workspace of cuBLAS on a data-centre GPU, as drivers report them.
constexpr int64_t kCudaBytes = 600 * kMiB;
constexpr int64_t kEstimateFloatBytes = 4;

void check(const std::string& what, const std::string& found,
           const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), found) != known.end()) return;
  throw ConfigError(
      fmt::format("{} must be one of {}, found `{}`", what, fmt::join(known, ", "), found));
}

std::string quantization_of(const EstimateRequest& request) {
  return request.mode == "qlora" && request.quantization == "none" ? "nf4" : request.quantization;
}

int64_t round_up(int64_t number, int64_t to) { return (number + to - 1) / to; }

int64_t count(const ParameterDeclaration& parameter) {
  int64_t elements = 1;
  for (const int64_t size : parameter.shape) elements *= size;
  return elements;
}

constexpr std::string_view kBlocks = "model.layers.";
constexpr std::string_view kOutputGate = "output_gate";

// "model.layers.3" of "model.layers.3.mlp.up_proj.weight": nn::Decoder::units() divides parameters
// in this way.
std::string unit_of(const std::string& parameter) {
  if (parameter.starts_with("model.per_layer_")) return "model.embed_tokens_per_layer.weight";
  if (!parameter.starts_with(kBlocks)) return parameter;
  return parameter.substr(0, parameter.find('.', kBlocks.size()));
}

// Bytes of codes and scales. Codes of 4 bits have a scale for each block of 64, codes of 8 bits for
// each row.
int64_t quantized_bytes(const ParameterDeclaration& weight, const EstimateRequest& request) {
  constexpr int64_t kBlock = 64;
  constexpr int64_t kScalesPerGroup = 256;
  const int64_t elements = count(weight);
  if (quantization_of(request) == "int8")
    return elements + weight.shape.front() * kEstimateFloatBytes;
  const int64_t scales = round_up(elements, kBlock);
  const int64_t scale_bytes = request.double_quant
                                  ? scales + round_up(scales, kScalesPerGroup) * kEstimateFloatBytes
                                  : scales * kEstimateFloatBytes;
  return elements / 2 + scale_bytes;
}

std::string_view last_part(std::string_view module) { return module.substr(module.rfind('.') + 1); }

// "model.layers.0.self_attn.q_proj" of its weight; empty for what is no linear map of a block.
std::string linear_of_block(const ParameterDeclaration& parameter) {
  constexpr std::string_view kEnd = ".weight";
  if (!architecture::is_map_of_blocks(parameter)) return {};
  return parameter.name.substr(0, parameter.name.size() - kEnd.size());
}

bool is_target(std::string_view module, const EstimateRequest& request) {
  // Whole names: v_proj is not the end of qkv_proj.
  return request.lora_targets.empty() ||
         std::find(request.lora_targets.begin(), request.lora_targets.end(), last_part(module)) !=
             request.lora_targets.end();
}

int64_t norms_of_block(const DecoderSpec& model) {
  int64_t norms = 0;
  for (const std::string* name : {&model.norms.before_attention, &model.norms.after_attention,
                                  &model.norms.before_ffn, &model.norms.after_ffn})
    if (!name->empty()) ++norms;
  return norms;
}

// The parts of one unit, to which its parameters are added one by one.
struct GrowingUnit {
  ParameterPart quantized = {};
  ParameterPart plain = {};
  ParameterPart adapter = {.trained = true, .beside_frozen = true};
  int64_t packed_bytes = 0;

  UnitShape unit() const {
    UnitShape unit{.packed_bytes = packed_bytes};
    for (const ParameterPart& part : {quantized, plain, adapter})
      if (part.elements > 0) unit.parts.push_back(part);
    return unit;
  }
};

class ShapeMaker {
 public:
  ShapeMaker(const DecoderSpec& model, const EstimateRequest& request)
      : model_(model),
        request_(request),
        full_(request.mode == "full"),
        quantizes_(quantization_of(request) != "none"),
        shape_{.layers = model.num_layers(),
               .hidden = model.hidden_size,
               .vocab = model.vocab_size,
               .kept = norms_of_block(model) * model.hidden_size,
               .element_bytes = request.dtype == "bf16" ? 2 : 4,
               .head_elements = model.vocab_size * model.hidden_size,
               .trains_head = full_,
               .tied_head = model.tied_head,
               .on_cpu = request.hardware == Hardware::Cpu} {
    for (const ParameterDeclaration& parameter : declare_parameters(model)) add(parameter);
    close_unit();
    shape_.kept += (in_blocks_ + adapter_width_) / std::max<int64_t>(shape_.layers, 1);
    shape_.at_work = (model.fused_gate_up ? 5 : 3) * model.widest_ffn() + 2 * model.hidden_size;
    if (model.num_layers_with(architecture::TokenMixer::GatedDeltaNet) > 0)
      shape_.at_work =
          std::max(shape_.at_work, delta_net_at_work(model.delta_net, shape_.element_bytes));
    shape_.at_work += dora_at_work_;
    if (!request.dora) shape_.recomputed = recomputed_ / std::max<int64_t>(shape_.layers, 1);
  }
  TrainingShape shape() const { return shape_; }

 private:
  void add(const ParameterDeclaration& parameter);
  void add_linear(const std::string& module, const ParameterDeclaration& weight);
  void add_dora(std::string_view name, int64_t out, int64_t in);
  void close_unit();

  const DecoderSpec& model_;
  const EstimateRequest& request_;
  const bool full_;
  const bool quantizes_;
  TrainingShape shape_;
  std::string unit_name_ = {};
  GrowingUnit unit_ = {};
  int64_t in_blocks_ = 0;
  int64_t recomputed_ = 0;
  int64_t adapter_width_ = 0;
  int64_t dora_at_work_ = 0;
};

void ShapeMaker::close_unit() {
  if (!unit_name_.empty()) shape_.units.push_back(unit_.unit());
  unit_ = {.plain = {.trained = full_}};
}

void ShapeMaker::add(const ParameterDeclaration& parameter) {
  const std::string name = unit_of(parameter.name);
  if (name != unit_name_) {
    close_unit();
    unit_name_ = name;
  }
  const std::string linear = linear_of_block(parameter);
  if (!linear.empty()) add_linear(linear, parameter);
  if (!linear.empty() && quantizes_) return;
  unit_.plain.elements += count(parameter);
  unit_.plain.bytes = unit_.plain.elements * shape_.element_bytes;
}

// The widths equal the widths that apps/recipes/memory/memory_plan.cpp counts for a loaded model.
void ShapeMaker::add_linear(const std::string& module, const ParameterDeclaration& weight) {
  const std::string_view name = map_name(module);
  const int64_t out = weight.shape[0];
  const int64_t in = weight.shape[1];
  const int64_t whole_bytes = count(weight) * shape_.element_bytes;
  const MapWidths widths = widths_around(name, out, in);
  in_blocks_ += widths.kept;
  // Inputs of norms, which no other op keeps. With an output gate in the queries' map half of the
  // map is the gate; the gated output is as wide.
  if (model_.query_key_norm && (name == "q_proj" || name == "k_proj")) in_blocks_ += out;
  if (!is_first_map(name) || !model_.norms.before_attention.empty())
    recomputed_ += widths.recomputed;
  if (quantizes_) {
    unit_.quantized.elements += count(weight);
    unit_.quantized.bytes += quantized_bytes(weight, request_);
    if (!shape_.on_cpu) shape_.unfolded_bytes = std::max(shape_.unfolded_bytes, whole_bytes);
  } else if (!full_ && shape_.on_cpu) {
    unit_.packed_bytes += whole_bytes;
  }
  if (full_ || !is_target(module, request_)) return;
  unit_.adapter.elements += request_.lora_rank * (in + out);
  unit_.adapter.bytes = unit_.adapter.elements * kEstimateFloatBytes;
  adapter_width_ += std::min(request_.lora_rank, in) / 2 + std::min(request_.lora_rank, out) / 2;
  if (request_.dora) add_dora(name, out, in);
}

void ShapeMaker::add_dora(std::string_view name, int64_t out, int64_t in) {
  const DoraWidths widths = dora_widths(out, in, request_.drops_dora && shares_its_input(name),
                                        shape_.element_bytes, quantizes_);
  unit_.adapter.elements += out;
  unit_.adapter.bytes = unit_.adapter.elements * kEstimateFloatBytes;
  adapter_width_ += widths.kept;
  dora_at_work_ = std::max(dora_at_work_, widths.at_work);
  shape_.unfolded_bytes = std::max(shape_.unfolded_bytes, widths.norm_bytes);
}

}  // namespace

std::string_view map_name(std::string_view module) {
  return module.ends_with(architecture::kGateMap) ? kOutputGate : last_part(module);
}

bool is_first_map(std::string_view map) {
  return map == "q_proj" || map == "qkv_proj" || map == "in_proj_qkv" || map == "gate_proj" ||
         map == "gate_up_proj";
}

bool shares_its_input(std::string_view map) {
  return map == "k_proj" || map == "v_proj" || map == kOutputGate || map == "up_proj" ||
         map == "in_proj_z" || map == "in_proj_b" || map == "in_proj_a";
}

MapWidths widths_around(std::string_view map, int64_t out, int64_t in) {
  // The convolution keeps its input, and the delta rule the convolution's output.
  if (map == "in_proj_qkv") return {.kept = in + 2 * out, .recomputed = in};
  // The outputs of the delta rule and of its norm are as wide as the output gate.
  if (map == "in_proj_z") return {.kept = 3 * out, .recomputed = out};
  // A gate is kept as the map gives it, and in fp32.
  if (map == "in_proj_b" || map == "in_proj_a") return {.kept = 3 * out};
  // The gated output is as wide as the gate.
  if (map == kOutputGate) return {.kept = 2 * out, .recomputed = out};
  if (is_first_map(map)) return {.kept = in + out, .recomputed = in};
  if (map == "down_proj" || map == "out_proj") return {.kept = in, .recomputed = in};
  // The gate keeps its input, its output and a copy of the layer's input; the map behind it keeps
  // its input, and the norm keeps the output of that map.
  if (map == "per_layer_input_gate") return {.kept = in + 2 * out};
  if (map == "per_layer_projection") return {.kept = in + out, .recomputed = in};
  return {.kept = map == "o_proj" ? in : out};
}

int64_t delta_net_at_work(const architecture::DeltaNetSpec& sizes, int64_t element_bytes) {
  constexpr int64_t kChunkTokens = 64;  // kernels::kDeltaRuleChunk
  const int64_t states = sizes.num_value_heads * sizes.key_head_dim * sizes.value_head_dim *
                         kEstimateFloatBytes / (kChunkTokens * element_bytes);
  return 2 * sizes.conv_channels() + 2 * sizes.value_width() + states;
}

DoraWidths dora_widths(int64_t out, int64_t in, bool own_input, int64_t weight_element_bytes,
                       bool coded) {
  constexpr int64_t kGradients = 4;
  const int64_t wide_bytes = coded ? weight_element_bytes + kEstimateFloatBytes
                             : weight_element_bytes == kEstimateFloatBytes ? 0
                                                                           : kEstimateFloatBytes;
  return {.kept = 2 * out + (own_input ? in : 0),
          .at_work = kGradients * out,
          .norm_bytes = out * in * (kEstimateFloatBytes + wide_bytes)};
}

TrainingShape training_shape(const DecoderSpec& model, const EstimateRequest& request) {
  check("the mode", request.mode, {"full", "lora", "qlora"});
  check("the quantization", request.quantization, {"none", "nf4", "fp4", "int8"});
  check("the dtype", request.dtype, {"bf16", "fp32"});
  if (request.mode == "full" && request.quantization != "none")
    throw ConfigError("quantised weights stay frozen, but mode full trains all weights",
                      {.hint = "mode qlora"});
  return ShapeMaker(model, request).shape();
}

int64_t count_parameters(const DecoderSpec& model) {
  int64_t elements = 0;
  for (const ParameterDeclaration& parameter : declare_parameters(model))
    elements += count(parameter);
  return elements;
}

namespace {

// Keys and values of the texts of a step.
int64_t bytes_of_drawing(const DecoderSpec& model, const EstimateRequest& request) {
  if (request.texts_of_row == 0) return 0;
  const int64_t texts = request.micro_batches * request.batch_rows * request.texts_of_row;
  const GenerationMemory memory = plan_generation(
      model, {.dtype = request.dtype,
              .rows = {.rows = rows_of_drawing(texts, request.hardware == Hardware::Cpu),
                       .row_tokens = request.row_tokens},
              .hardware = request.hardware});
  return memory.kv_bytes + memory.state_bytes;
}

MemoryQuestion question_of(const DecoderSpec& model, const EstimateRequest& request) {
  const int64_t reference_bytes =
      request.keeps_reference ? count_parameters(model) * (request.dtype == "bf16" ? 2 : 4) : 0;
  return {.shape = training_shape(model, request),
          .ranks = request.ranks,
          .keep_whole_below = request.keep_whole_below,
          .bucket_bytes = request.bucket_bytes,
          .accumulates = request.accumulates,
          .micro_batch_tokens =
              request.batch_rows * std::max<int64_t>(request.texts_of_row, 1) * request.row_tokens,
          .recompute = request.recompute,
          .moment_bytes_of_256 = request.moment_bytes_of_256,
          .has_masters = request.has_masters,
          .pages_moments = request.pages_moments,
          .offloads_inputs = request.offloads_inputs,
          .program_bytes = request.hardware == Hardware::Cpu ? kProgramBytes : kCudaBytes,
          .reference_bytes = reference_bytes,
          .drawing_bytes = bytes_of_drawing(model, request),
          .device_bytes = request.device_bytes};
}

}  // namespace

architecture::Recompute choose_recompute(const DecoderSpec& model, const EstimateRequest& request,
                                         int64_t device_bytes) {
  return choose_recompute(question_of(model, request), request.sharing, device_bytes);
}

MemoryPlan estimate_memory(const DecoderSpec& model, const EstimateRequest& request) {
  return plan_memory(question_of(model, request), request.sharing);
}

}  // namespace convoy::sizing
