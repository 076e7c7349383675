// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/model_files/lora_gguf.h"

#include <ATen/ATen.h>

#include <cmath>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/gguf/encode.h"
#include "convoy/core/io/gguf/gguf_family.h"
#include "convoy/core/io/gguf/writer.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/adapters/gguf_lora.h"
#include "convoy/model/adapters/module_names.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/gguf_export.h"

namespace convoy::recipes {
namespace {

constexpr std::string_view kPeftPrefix = adapters::kPeftPrefix;

[[noreturn]] void refuse(const LoadedModel& loaded, const std::string& message) {
  throw DataError(message, {.file = loaded.folder.path().string(),
                            .hint = "write the merged model: leave --adapter-only out"});
}

gguf::TensorToWrite tensor_of(std::string name, const at::Tensor& given, gguf::TensorType type) {
  const at::Tensor values = given.to(at::kFloat).contiguous();
  return {.name = std::move(name),
          .type = type,
          .shape = values.sizes().vec(),
          .produce = [values, type](const io::ByteSink& sink) {
            std::vector<std::byte> bytes(
                static_cast<size_t>(values.numel() * gguf::info_of(type).block_bytes));
            gguf::encode(
                type, {values.const_data_ptr<float>(), static_cast<size_t>(values.numel())}, bytes);
            sink(bytes);
          }};
}

void refuse_others(const LoadedModel& loaded) {
  const adapters::LoraConfig& config = loaded.lora->config();
  if (config.use_dora) refuse(loaded, "llama.cpp has no DoRA");
  if (!config.modules_to_save.empty() || loaded.lora->brings_embeddings())
    refuse(loaded, "llama.cpp's adapters hold no modules that are saved whole");
}

const gguf::Family& family_of_base(const io::ModelFolder& base,
                                   const architecture::DecoderSpec& spec) {
  const gguf::Family* const family = gguf::family_of_model_type(spec.family);
  const std::string refusal = family == nullptr
                                  ? "Convoy has no names in GGUF for the tensors of this family"
                                  : models::gguf_refusal(spec);
  if (refusal.empty()) return *family;
  throw DataError(
      fmt::format("adapters of this model have no form in GGUF: {}", refusal),
      {.file = base.path().string(),
       .hint = "use the adapter in its own folder, with `convoy generate` or `convoy serve`"});
}

}  // namespace

void convert_lora_gguf(const std::filesystem::path& path, const io::ModelFolder& base,
                       const std::filesystem::path& folder) {
  const architecture::DecoderSpec spec = families::read_decoder_spec(base);
  family_of_base(base, spec);  // refuses others
  const adapters::ModuleNames names = adapters::names_in_whole(spec.text_module);
  adapters::GgufLora lora = adapters::read_gguf_lora(path, spec.family, spec.head_dim);
  std::vector<io::TensorSource> tensors;
  for (const nn::NamedTensor& tensor : lora.tensors)
    tensors.push_back(device::tensor_source(
        adapters::kPeftPrefix + names.of(tensor.name.substr(kPeftPrefix.size())), tensor.value));
  for (std::string& module : lora.config.target_names) module = names.of(module);
  for (auto& [module, rank] : lora.config.rank_pattern.pairs) module = names.of(module);
  for (auto& [module, alpha] : lora.config.alpha_pattern.pairs) module = names.of(module);
  lora.config.base_model = base.path().string();
  io::write_safetensors(folder / "adapter_model.safetensors", std::move(tensors));
  write_file_atomic(folder / "adapter_config.json",
                    lora.config.to_peft_json(lora.config.target_names));
}

void write_lora_gguf(const LoadedModel& loaded, const gguf::FileType& type,
                     const std::filesystem::path& path) {
  refuse_others(loaded);
  const architecture::DecoderSpec spec = families::read_decoder_spec(loaded.folder);
  const gguf::Family& family = family_of_base(loaded.folder, spec);
  const adapters::LoraConfig& config = loaded.lora->config();
  // True when one alpha gives the scale of every module. If not, each B is multiplied by its scale,
  // and an alpha of 0 in the file makes llama.cpp apply no scale.
  bool one_alpha = true;
  for (const auto& adapted : loaded.lora->adapted()) {
    const double usual = config.alpha / static_cast<double>(adapted.lora->a().size(0));
    one_alpha = one_alpha && std::fabs(adapted.lora->scaling() - usual) <= 1e-12 * std::fabs(usual);
  }
  std::vector<gguf::TensorToWrite> tensors;
  for (const auto& adapted : loaded.lora->adapted()) {
    const std::string& module = adapted.linear->name();
    const auto name = gguf::file_name_of(family, module + ".weight");
    if (!name) refuse(loaded, fmt::format("llama.cpp has no adapter of {} here", module));
    if (module.find(".linear_attn.") != std::string::npos)
      refuse(loaded, fmt::format("{}: GGUF has the heads of Gated DeltaNet in another order, in "
                                 "which Convoy writes no adapters",
                                 module));
    if (module.ends_with(".per_layer_model_projection"))
      refuse(loaded, fmt::format("{}: llama.cpp multiplies by this map without adapters", module));
    const at::Tensor a = adapted.lora->a().detach().cpu().to(at::kFloat);
    at::Tensor b = adapted.lora->b().detach().cpu().to(at::kFloat);
    if (gguf::rows_of(family, module + ".weight") != gguf::Rows::AsTheyAre)
      b = models::rows_in_file_order(b, spec.head_dim);
    if (!one_alpha) b = b * adapted.lora->scaling();
    tensors.push_back(tensor_of(*name + ".lora_a", a, type.usual));
    tensors.push_back(tensor_of(*name + ".lora_b", b, type.usual));
  }
  gguf::Metadata metadata;
  metadata.text("general.architecture", family.architecture);
  metadata.text("general.type", "adapter");
  metadata.number("general.file_type", type.number);
  metadata.text("adapter.type", "lora");
  metadata.real("adapter.lora.alpha", one_alpha ? config.alpha : 0.0);
  gguf::write_file(path, metadata, tensors);
}

}  // namespace convoy::recipes
