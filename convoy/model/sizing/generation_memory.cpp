// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/generation_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "convoy/core/base/bytes_text.h"

namespace convoy::sizing {

using architecture::DecoderSpec;
using architecture::ParameterDeclaration;

namespace {

constexpr int64_t kGeneratedFloatBytes = 4;
constexpr int64_t kScaleBytes = 4;      // fp32
constexpr int64_t kKvBlockTokens = 32;  // a block of the engine

// Elements of a model, by their kind.
struct Elements {
  int64_t all = 0;
  int64_t of_blocks = 0;  // in linear maps of blocks
  int64_t head = 0;
  int64_t rows_of_blocks = 0;  // outputs of the linear maps of blocks
  int64_t rows_of_head = 0;
};

Elements elements_of(const DecoderSpec& model) {
  Elements elements{.head = model.vocab_size * model.hidden_size, .rows_of_head = model.vocab_size};
  for (const ParameterDeclaration& parameter : architecture::declare_parameters(model)) {
    int64_t count = 1;
    for (const int64_t size : parameter.shape) count *= size;
    elements.all += count;
    if (!architecture::is_map_of_blocks(parameter)) continue;
    elements.of_blocks += count;
    elements.rows_of_blocks += parameter.shape.front();
  }
  return elements;
}

// Bytes of the linear maps of blocks in bitsandbytes' formats.
int64_t coded_bytes(const Elements& elements, const GenerationRequest& request) {
  constexpr int64_t kBlock = 64;
  if (request.quantization == "int8")
    return elements.of_blocks + elements.rows_of_blocks * kScaleBytes;
  const int64_t scales = elements.of_blocks / kBlock;
  return elements.of_blocks / 2 + (request.double_quant ? scales : scales * kScaleBytes);
}

// Codes of 8 bits share a scale in fp32 by output; codes of 4 bits share scale and offset, each in
// bf16, by 32 inputs. The head is in 8 bits.
void add_integer_weights(const Elements& elements, const GenerationRequest& request,
                         int64_t element_bytes, bool tied, GenerationMemory& memory) {
  constexpr int64_t kGroup = 32;
  const int64_t whole = elements.all - elements.of_blocks - (tied ? 0 : elements.head);
  const int64_t of_blocks = request.weights == "int4"
                                ? elements.of_blocks / 2 + elements.of_blocks / kGroup * 4
                                : elements.of_blocks + elements.rows_of_blocks * kScaleBytes;
  memory.weight_bytes =
      whole * element_bytes + of_blocks + elements.head + elements.rows_of_head * kScaleBytes;
  memory.loading_bytes = elements.all * element_bytes;
}

int64_t kv_bytes_of(const DecoderSpec& model, const GenerationRows& rows, int64_t element_bytes) {
  if (!rows.keeps_kv) return 0;
  int64_t bytes = 0;
  for (const architecture::LayerSpec& layer : model.layers) {
    if (layer.mixer == architecture::TokenMixer::GatedDeltaNet ||
        layer.keys_of != architecture::kOwnKeys)
      continue;
    const int64_t kv_heads = model.kv_heads_of(layer);
    const int64_t values = 2 * kv_heads * model.head_dim_of(layer);
    int64_t tokens = rows.row_tokens;
    if (layer.sliding_window > 0)
      tokens = std::min(tokens, layer.sliding_window + rows.step_tokens);
    int64_t blocks = rows.rows * ((tokens + kKvBlockTokens - 1) / kKvBlockTokens);
    if (rows.kv_blocks > 0) blocks = std::min(blocks, rows.kv_blocks);
    const int64_t value_bytes =
        rows.int8_kv ? values + 2 * kv_heads * kScaleBytes : values * element_bytes;
    bytes += blocks * kKvBlockTokens * value_bytes;
  }
  return rows.kv_bytes > 0 ? std::min(bytes, rows.kv_bytes) : bytes;
}

// Tails of convolutions in the model's type, and states in fp32: one of each row, and as many at
// ends of prefixes.
int64_t state_bytes_of(const DecoderSpec& model, const GenerationRows& rows,
                       int64_t element_bytes) {
  if (!rows.keeps_kv) return 0;
  const architecture::DeltaNetSpec& sizes = model.delta_net;
  const int64_t of_layer =
      sizes.conv_channels() * (sizes.conv_width - 1) * element_bytes +
      sizes.num_value_heads * sizes.key_head_dim * sizes.value_head_dim * kGeneratedFloatBytes;
  return 2 * rows.rows * model.num_layers_with(architecture::TokenMixer::GatedDeltaNet) * of_layer;
}

int64_t widest_keys_and_values(const DecoderSpec& model) {
  int64_t widest = 0;
  for (const architecture::LayerSpec& layer : model.layers)
    widest = std::max(widest, 2 * model.kv_heads_of(layer) * model.head_dim_of(layer));
  return widest;
}

// Queries, keys, values and the outputs of the feed-forward's maps for the tokens of a step, and
// the logits of the rows that draw.
int64_t step_bytes_of(const DecoderSpec& model, const GenerationRows& rows, int64_t element_bytes) {
  const int64_t tokens =
      std::min(rows.step_tokens, std::max(rows.rows, rows.rows * rows.row_tokens));
  const int64_t recurrent = 2 * model.delta_net.conv_channels() + 3 * model.delta_net.value_width();
  const int64_t inputs = model.num_layers() * model.layer_inputs.width;
  const int64_t width =
      std::max(3 * model.widest_ffn() + widest_keys_and_values(model), recurrent) +
      4 * model.hidden_size + inputs;
  const int64_t logit_rows = rows.logit_rows > 0 ? rows.logit_rows : rows.rows;
  return tokens * width * element_bytes + logit_rows * model.vocab_size * kGeneratedFloatBytes;
}

// GPUs compute attention under a soft cap row by row (kernels/attention/attention_aten.h): scores
// and weights of a block of queries in fp32, and the row's keys and values, gathered and in fp32.
int64_t capped_attention_bytes(const DecoderSpec& model, const GenerationRows& rows,
                               int64_t element_bytes) {
  constexpr int64_t kQueryBlock = 512;
  if (model.score_cap == 0) return 0;
  const int64_t queries = std::min({kQueryBlock, rows.step_tokens, rows.row_tokens});
  const int64_t scores = 2 * model.num_heads * queries * kGeneratedFloatBytes;
  const int64_t keys =
      2 * model.num_kv_heads * model.head_dim * (element_bytes + kGeneratedFloatBytes);
  return rows.row_tokens * (scores + keys);
}

}  // namespace

int64_t GenerationMemory::total_bytes() const {
  const int64_t later = weight_bytes + packed_bytes + kv_bytes + state_bytes + step_bytes;
  return program_bytes + std::max(later, loading_bytes);
}

void GenerationMemory::bound_kv(int64_t all_bytes) {
  const int64_t left = std::max<int64_t>(all_bytes - program_bytes - weight_bytes - state_bytes, 0);
  kv_bytes = std::min(kv_bytes, left / 2);
}

std::string GenerationMemory::text() const {
  const int64_t later = weight_bytes + packed_bytes + kv_bytes + state_bytes + step_bytes;
  std::string text = bytes_text(total_bytes());
  const char* sign = " = ";
  const auto add = [&](const char* name, int64_t bytes) {
    if (bytes > 0)
      text += fmt::format("{}{} {}", std::exchange(sign, " + "), bytes_text(bytes), name);
  };
  add("program", program_bytes);
  if (loading_bytes > later) {
    add("whole weights while they are read", loading_bytes);
    return text;
  }
  add("weights", weight_bytes);
  add("packed copies", packed_bytes);
  add("keys and values", kv_bytes);
  add("states of rows", state_bytes);
  add("a step", step_bytes);
  return text;
}

int64_t rows_of_drawing(int64_t texts, bool on_cpu) {
  return std::clamp<int64_t>(texts, 1, on_cpu ? 64 : 256);
}

GenerationMemory plan_generation(const DecoderSpec& model, const GenerationRequest& request) {
  const int64_t element_bytes = request.dtype == "bf16" ? 2 : kGeneratedFloatBytes;
  const Elements elements = elements_of(model);
  const bool on_cpu = request.hardware == Hardware::Cpu;
  GenerationMemory memory{.program_bytes = request.program_bytes};
  if (request.weights != "model") {
    add_integer_weights(elements, request, element_bytes, model.tied_head, memory);
  } else if (request.quantization != "none") {
    memory.weight_bytes =
        (elements.all - elements.of_blocks) * element_bytes + coded_bytes(elements, request);
    if (on_cpu) memory.packed_bytes = elements.head * element_bytes;
  } else {
    memory.weight_bytes = elements.all * element_bytes;
    // Steps of single tokens are products of few rows, for which kernels/frozen_linear packs
    // weights.
    if (on_cpu) memory.packed_bytes = (elements.of_blocks + elements.head) * element_bytes;
  }
  GenerationRows rows = request.rows;
  if (model.max_positions > 0) rows.row_tokens = std::min(rows.row_tokens, model.max_positions);
  memory.kv_bytes = kv_bytes_of(model, rows, element_bytes);
  memory.state_bytes = state_bytes_of(model, rows, element_bytes);
  memory.step_bytes = step_bytes_of(model, rows, element_bytes);
  if (!on_cpu) memory.step_bytes += capped_attention_bytes(model, rows, element_bytes);
  return memory;
}

}  // namespace convoy::sizing
