// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/known_models.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "convoy/core/base/lower_case.h"

namespace convoy::sizing {
namespace {

struct KnownModel {
  const char* name;  // the beginning of its hub ids, without the organisation; the first that fits
  const char* family;
  int64_t hidden, ffn, layers, heads, kv_heads, head_dim, vocab;
  bool tied_head;
  int64_t positions = 131072;
  bool is_whole_name = false;     // longer names are other models
  int64_t delta_value_heads = 0;  // value heads of Gated DeltaNet; 0: no such layers
};

constexpr std::array kModels{
    KnownModel{"qwen2.5-0.5b", "qwen2", 896, 4864, 24, 14, 2, 64, 151936, true, 32768},
    KnownModel{"qwen2.5-1.5b", "qwen2", 1536, 8960, 28, 12, 2, 128, 151936, true, 32768},
    KnownModel{"qwen2.5-3b", "qwen2", 2048, 11008, 36, 16, 2, 128, 151936, true, 32768},
    KnownModel{"qwen2.5-7b", "qwen2", 3584, 18944, 28, 28, 4, 128, 152064, false, 32768},
    KnownModel{"qwen2.5-14b", "qwen2", 5120, 13824, 48, 40, 8, 128, 152064, false, 32768},
    KnownModel{"qwen2.5-32b", "qwen2", 5120, 27648, 64, 40, 8, 128, 152064, false, 32768},
    KnownModel{"qwen2.5-72b", "qwen2", 8192, 29568, 80, 64, 8, 128, 152064, false, 32768},
    KnownModel{"qwen3-0.6b-base", "qwen3", 1024, 3072, 28, 16, 8, 128, 151936, true, 32768},
    KnownModel{"qwen3-0.6b", "qwen3", 1024, 3072, 28, 16, 8, 128, 151936, true, 40960},
    KnownModel{"qwen3-1.7b-base", "qwen3", 2048, 6144, 28, 16, 8, 128, 151936, true, 32768},
    KnownModel{"qwen3-1.7b", "qwen3", 2048, 6144, 28, 16, 8, 128, 151936, true, 40960},
    KnownModel{"qwen3-4b-base", "qwen3", 2560, 9728, 36, 32, 8, 128, 151936, true, 32768},
    KnownModel{"qwen3-4b-instruct-2507", "qwen3", 2560, 9728, 36, 32, 8, 128, 151936, true, 262144},
    KnownModel{"qwen3-4b-thinking-2507", "qwen3", 2560, 9728, 36, 32, 8, 128, 151936, true, 262144},
    KnownModel{"qwen3-4b", "qwen3", 2560, 9728, 36, 32, 8, 128, 151936, true, 40960},
    KnownModel{"qwen3-8b-base", "qwen3", 4096, 12288, 36, 32, 8, 128, 151936, false, 32768},
    KnownModel{"qwen3-8b", "qwen3", 4096, 12288, 36, 32, 8, 128, 151936, false, 40960},
    KnownModel{"qwen3-14b-base", "qwen3", 5120, 17408, 40, 40, 8, 128, 151936, false, 32768},
    KnownModel{"qwen3-14b", "qwen3", 5120, 17408, 40, 40, 8, 128, 151936, false, 40960},
    KnownModel{"qwen3-32b", "qwen3", 5120, 25600, 64, 64, 8, 128, 151936, false, 40960},
    KnownModel{"qwen3.5-0.8b", "qwen3_5", 1024, 3584, 24, 8, 2, 256, 248320, true, 262144, false,
               16},
    KnownModel{"qwen3.5-2b", "qwen3_5", 2048, 6144, 24, 8, 2, 256, 248320, true, 262144, false, 16},
    KnownModel{"qwen3.5-4b", "qwen3_5", 2560, 9216, 32, 16, 4, 256, 248320, true, 262144, false,
               32},
    KnownModel{"qwen3.5-9b", "qwen3_5", 4096, 12288, 32, 16, 4, 256, 248320, false, 262144, false,
               32},
    KnownModel{"qwen3.5-27b", "qwen3_5", 5120, 17408, 64, 24, 4, 256, 248320, false, 262144, false,
               48},
    KnownModel{"smollm3-3b", "smollm3", 2048, 11008, 36, 16, 4, 128, 128256, true, 65536},
    KnownModel{"smollm2-135m", "llama", 576, 1536, 30, 9, 3, 64, 49152, true},
    KnownModel{"llama-3.2-1b", "llama", 2048, 8192, 16, 32, 8, 64, 128256, true},
    KnownModel{"llama-3.2-3b", "llama", 3072, 8192, 28, 24, 8, 128, 128256, true},
    KnownModel{"llama-3.1-8b", "llama", 4096, 14336, 32, 32, 8, 128, 128256, false},
    KnownModel{"llama-3.1-70b", "llama", 8192, 28672, 80, 64, 8, 128, 128256, false},
    KnownModel{"gemma-2b", "gemma", 2048, 16384, 18, 8, 1, 256, 256000, true, 8192},
    KnownModel{"gemma-1.1-2b", "gemma", 2048, 16384, 18, 8, 1, 256, 256000, true, 8192},
    KnownModel{"gemma-7b", "gemma", 3072, 24576, 28, 16, 16, 256, 256000, true, 8192},
    KnownModel{"gemma-1.1-7b", "gemma", 3072, 24576, 28, 16, 16, 256, 256000, true, 8192},
    KnownModel{"gemma-2-2b", "gemma2", 2304, 9216, 26, 8, 4, 256, 256000, true, 8192},
    KnownModel{"gemma-2-9b", "gemma2", 3584, 14336, 42, 16, 8, 256, 256000, true, 8192},
    KnownModel{"gemma-2-27b", "gemma2", 4608, 36864, 46, 32, 16, 128, 256000, true, 8192},
    KnownModel{"llama-3.3-70b", "llama", 8192, 28672, 80, 64, 8, 128, 128256, false},
    KnownModel{"mistral-small-24b", "mistral", 5120, 32768, 40, 32, 8, 128, 131072, false, 32768},
    KnownModel{"mistral-small-3.1-24b", "mistral", 5120, 32768, 40, 32, 8, 128, 131072, false},
    KnownModel{"mistral-small-3.2-24b", "mistral", 5120, 32768, 40, 32, 8, 128, 131072, false},
    KnownModel{"ministral-3-3b", "ministral3", 3072, 9216, 26, 32, 8, 128, 131072, true, 262144},
    KnownModel{"ministral-3-8b", "ministral3", 4096, 14336, 34, 32, 8, 128, 131072, false, 262144},
    KnownModel{"ministral-3-14b", "ministral3", 5120, 16384, 40, 32, 8, 128, 131072, false, 262144},
    KnownModel{"granite-3.0-2b", "granite", 2048, 8192, 40, 32, 8, 64, 49155, true, 4096},
    KnownModel{"granite-3.1-2b", "granite", 2048, 8192, 40, 32, 8, 64, 49155, true},
    KnownModel{"granite-3.2-2b", "granite", 2048, 8192, 40, 32, 8, 64, 49155, true},
    KnownModel{"granite-3.3-2b", "granite", 2048, 8192, 40, 32, 8, 64, 49159, true},
    KnownModel{"granite-3.0-8b", "granite", 4096, 12800, 40, 32, 8, 128, 49155, true, 4096},
    KnownModel{"granite-3.1-8b", "granite", 4096, 12800, 40, 32, 8, 128, 49155, true},
    KnownModel{"granite-3.2-8b", "granite", 4096, 12800, 40, 32, 8, 128, 49155, true},
    KnownModel{"granite-3.3-8b", "granite", 4096, 12800, 40, 32, 8, 128, 49159, true},
    KnownModel{"glm-4-9b-0414", "glm4", 4096, 13696, 40, 32, 2, 128, 151552, false, 32768},
    KnownModel{"gemma-3-1b", "gemma3", 1152, 6912, 26, 4, 1, 256, 262144, true, 32768},
    KnownModel{"gemma-3-4b", "gemma3", 2560, 10240, 34, 8, 4, 256, 262208, true},
    KnownModel{"gemma-3-12b", "gemma3", 3840, 15360, 48, 16, 8, 256, 262208, true},
    KnownModel{"gemma-3-27b", "gemma3", 5376, 21504, 62, 32, 16, 128, 262208, true},
    KnownModel{"gemma-4-e2b", "gemma4", 1536, 6144, 35, 8, 1, 256, 262144, true},
    KnownModel{"gemma-4-e4b", "gemma4", 2560, 10240, 42, 8, 2, 256, 262144, true},
    KnownModel{"gemma-4-12b", "gemma4", 3840, 15360, 48, 16, 8, 256, 262144, true, 262144},
    KnownModel{"gemma-4-31b", "gemma4", 5376, 21504, 60, 32, 16, 256, 262144, true, 262144},
    KnownModel{"olmo-2-0425-1b", "olmo2", 2048, 8192, 16, 16, 16, 128, 100352, false, 4096},
    KnownModel{"olmo-2-1124-7b", "olmo2", 4096, 11008, 32, 32, 32, 128, 100352, false, 4096},
    KnownModel{"olmo-2-1124-13b", "olmo2", 5120, 13824, 40, 40, 40, 128, 100352, false, 4096},
    KnownModel{"olmo-2-0325-32b", "olmo2", 5120, 27648, 64, 40, 8, 128, 100352, false, 4096},
    KnownModel{"olmo-3-1025-7b", "olmo3", 4096, 11008, 32, 32, 32, 128, 100278, false, 65536},
    KnownModel{"olmo-3-7b", "olmo3", 4096, 11008, 32, 32, 32, 128, 100278, false, 65536},
    KnownModel{"olmo-3-1125-32b", "olmo3", 5120, 27648, 64, 40, 8, 128, 100278, false, 65536},
    KnownModel{"olmo-3-32b", "olmo3", 5120, 27648, 64, 40, 8, 128, 100278, false, 65536},
    KnownModel{"olmo-3.1-32b", "olmo3", 5120, 27648, 64, 40, 8, 128, 100278, false, 65536},
    KnownModel{"phi-3-mini-4k", "phi3", 3072, 8192, 32, 32, 32, 96, 32064, false, 4096},
    KnownModel{"phi-4-mini-instruct", "phi3", 3072, 8192, 32, 24, 8, 128, 200064, true},
    KnownModel{"phi-4-mini-reasoning", "phi3", 3072, 8192, 32, 24, 8, 128, 200064, true},
    KnownModel{"phi-4-reasoning", "phi3", 5120, 17920, 40, 40, 10, 128, 100352, false, 32768},
    KnownModel{"phi-4", "phi3", 5120, 17920, 40, 40, 10, 128, 100352, false, 16384, true},
    KnownModel{"muse-glimmer-30b", "muse_glimmer", 6656, 19968, 52, 32, 2, 128, 202048, false,
               131072, true},
    KnownModel{"seed-oss-36b", "seed_oss", 5120, 27648, 64, 80, 8, 128, 155136, false, 524288},
};

// How layers of Gemma 4 differ.
struct KnownLayers {
  std::string_view name;
  int64_t interval;     // every `interval`-th layer sees all keys
  int64_t window;       // number of keys that the other layers see
  int64_t shared;       // the last layers, which read the keys and values of earlier ones
  bool is_double_wide;  // the feed-forward of the shared layers is twice as wide
  int64_t input_width;
  int64_t full_kv_heads;  // in layers that see all keys; above 0: their keys are values
};
constexpr std::array kGemma4Layers{KnownLayers{"gemma-4-e2b", 5, 512, 20, true, 256, 0},
                                   KnownLayers{"gemma-4-e4b", 6, 512, 18, false, 256, 0},
                                   KnownLayers{"gemma-4-12b", 6, 1024, 0, false, 0, 1},
                                   KnownLayers{"gemma-4-31b", 6, 1024, 0, false, 0, 4}};

constexpr int64_t kModelMiB = int64_t{1} << 20;

std::string lower_name(const std::string& hub_id) {
  const std::string name = lower_case(hub_id.substr(hub_id.rfind('/') + 1));
  constexpr std::string_view kMaker = "meta-";
  return name.starts_with(kMaker) ? name.substr(kMaker.size()) : name;
}

void set_gemma4_layers(const KnownLayers& known, architecture::DecoderSpec& spec) {
  constexpr int64_t kFullHeadDim = 512;
  spec.value_norm = true;
  spec.layer_scalars = true;
  spec.logit_cap = 30;
  spec.ropes = {{.kind = architecture::RopeKind::Proportional,
                 .theta = 1e6,
                 .rotated_features = kFullHeadDim / 4},
                {.theta = 1e4}};
  if (known.input_width > 0)
    spec.layer_inputs = {.width = known.input_width, .vocab_size = spec.vocab_size};
  const auto is_full = [&](int64_t layer) { return (layer + 1) % known.interval == 0; };
  const int64_t first_shared = spec.num_layers() - known.shared;
  for (int64_t index = 0; index < spec.num_layers(); ++index) {
    architecture::LayerSpec& layer = spec.layers[static_cast<size_t>(index)];
    layer.rope = is_full(index) ? 0 : 1;
    if (is_full(index)) {
      layer.head_dim = kFullHeadDim;
      layer.num_kv_heads = known.full_kv_heads;
      layer.keys_are_values = known.full_kv_heads > 0;
    } else {
      layer.sliding_window = known.window;
    }
    if (index < first_shared) continue;
    layer.keys_of = first_shared - 1;
    while (is_full(layer.keys_of) != is_full(index)) --layer.keys_of;
    if (known.is_double_wide) layer.ffn_size = 2 * spec.ffn_size;
  }
}

// The other sizes of Gated DeltaNet are equal in all models of Qwen3.5.
void add_delta_net(int64_t value_heads, architecture::DecoderSpec& spec) {
  constexpr int64_t kInterval = 4;
  spec.query_key_norm = spec.attention_gate = true;
  spec.delta_net = {.num_key_heads = 16,
                    .num_value_heads = value_heads,
                    .key_head_dim = 128,
                    .value_head_dim = 128,
                    .conv_width = 4};
  for (int64_t layer = 0; layer < spec.num_layers(); ++layer)
    if ((layer + 1) % kInterval != 0)
      spec.layers[layer].mixer = architecture::TokenMixer::GatedDeltaNet;
}

void add_glimmers_forms(architecture::DecoderSpec& spec) {
  spec.query_key_norm = spec.weightless_head_norms = spec.embedding_norm = true;
  spec.attention_gate = spec.gate_map = true;
  spec.norms = architecture::kNormsAround;
  spec.logit_cap = 20;
}

architecture::DecoderSpec spec_of(const KnownModel& model) {
  architecture::DecoderSpec spec;
  spec.family = model.family;
  spec.vocab_size = model.vocab;
  spec.hidden_size = model.hidden;
  spec.ffn_size = model.ffn;
  spec.num_heads = model.heads;
  spec.num_kv_heads = model.kv_heads;
  spec.head_dim = model.head_dim;
  spec.max_positions = model.positions;
  spec.tied_head = model.tied_head;
  // Not for the first Gemma, whose only norms are before attention and feed-forward.
  const bool is_later_gemma =
      spec.family == "gemma2" || spec.family == "gemma3" || spec.family == "gemma4";
  const bool is_olmo = spec.family == "olmo2" || spec.family == "olmo3";
  spec.qkv_bias = spec.family == "qwen2" || spec.family == "seed_oss";
  spec.query_key_norm =
      spec.family == "gemma3" || spec.family == "gemma4" || spec.family == "qwen3" || is_olmo;
  spec.norm_over_heads = is_olmo;
  if (is_later_gemma) spec.norms = architecture::kNormsAround;
  if (spec.family == "gemma2") {
    spec.score_cap = 50;
    spec.logit_cap = 30;
  }
  if (is_olmo) spec.norms = architecture::kNormsAfter;
  spec.fused_qkv = spec.family == "phi3";
  const bool is_glm = spec.family == "glm4";
  if (is_glm) spec.norms = architecture::kGlmsNormsAround;
  spec.fused_gate_up = spec.fused_qkv || is_glm;
  spec.layers.resize(static_cast<size_t>(model.layers));
  for (const KnownLayers& known : kGemma4Layers)
    if (known.name == model.name) set_gemma4_layers(known, spec);
  if (model.delta_value_heads > 0) add_delta_net(model.delta_value_heads, spec);
  if (spec.family == "muse_glimmer") add_glimmers_forms(spec);
  return spec;
}

}  // namespace

std::optional<architecture::DecoderSpec> known_model(const std::string& hub_id) {
  const std::string name = lower_name(hub_id);
  for (const KnownModel& model : kModels) {
    const std::string_view known = model.name;
    if (name == known || (!model.is_whole_name && name.starts_with(std::string(known) + "-")))
      return spec_of(model);
  }
  return std::nullopt;
}

const std::vector<Machine>& known_machines() {
  static const std::vector<Machine> machines = {
      {"rtx4090x2", "2x RTX 4090, 24 GB each", Hardware::Gpu, 2, 24564 * kModelMiB},
      {"a100x2", "2x A100, 80 GB each", Hardware::Gpu, 2, 81920 * kModelMiB},
      {"h100x2", "2x H100, 80 GB each", Hardware::Gpu, 2, 81559 * kModelMiB},
      {"h100", "one H100, 80 GB", Hardware::Gpu, 1, 81559 * kModelMiB},
      {"rtx5090", "one RTX 5090, 32 GB", Hardware::Gpu, 1, 32607 * kModelMiB},
      {"h200x2", "2x H200, 141 GB each", Hardware::Gpu, 2, 143771 * kModelMiB},
      {"h200x4", "4x H200, 141 GB each", Hardware::Gpu, 4, 143771 * kModelMiB},
      {"single-gpu", "one GPU of 24 GB", Hardware::Gpu, 1, 24564 * kModelMiB},
      {"cpu", "a host with 16 GiB", Hardware::Cpu, 1, 16384 * kModelMiB},
  };
  return machines;
}

const Machine* known_machine(const std::string& name) {
  const auto& machines = known_machines();
  const auto found = std::find_if(machines.begin(), machines.end(),
                                  [&](const Machine& machine) { return machine.name == name; });
  return found == machines.end() ? nullptr : &*found;
}

}  // namespace convoy::sizing
