// SPDX-License-Identifier: Apache-2.0
//
// Everything a command needs of a model folder: weights, tokenizer, chat template, and an adapter
// on top.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"
#include "convoy/machine/device/placement.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/models/quantization_config.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/deferred_values.h"

namespace convoy::recipes {

struct ModelRequest {
  std::string name;  // folder or hub id
  std::string revision = "main";
  std::string adapter = {};  // PEFT folder; empty = none
  std::string dtype = "fp32";
  std::string template_path = {};
  at::Device device = at::kCPU;
  bool deferred = false;          // parameters come without memory
  std::string weights = "model";  // or int8, int4: of linear maps, for inference alone
  models::WeightCoding coding = {};
};

// Of a model name that is a PEFT adapter's folder: its base, and the folder.
struct AdapterStart {
  std::string base;
  std::string adapter;
};
std::optional<AdapterStart> adapter_start(const std::string& name, const Log& log);

struct LoadedModel {
  io::ModelFolder folder;
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  std::unique_ptr<nn::CausalLm> model;
  std::unique_ptr<nn::DeferredValues> values;  // of a model that came without; else null
  std::optional<adapters::LoraModel> lora;

  const text::ChatTemplate* template_or_null() const {
    return chat_template ? &*chat_template : nullptr;
  }
};

// `type`: nf4, fp4 or int8; none and auto: as the files have them.
models::WeightCoding weight_coding(const std::string& type, bool double_quant,
                                   int64_t block_size = 64,
                                   std::vector<std::string> skip_modules = {});
// "none", or how the model's weights are held: "nf4, blocks of 64, double".
std::string coding_text(nn::CausalLm& model);

// The linear maps of blocks in codes.
void code_linears(nn::CausalLm& model, const kernels::CodedFormat& format);

// Throws ConfigError for --double-quant of a format without blocks, and for two ways to hold the
// same weights. `weights`: of EngineFlags.
void require_one_format(const std::string& quantization, bool double_quant,
                        const std::string& weights = "model");

// `weights`: int8 or int4. For inference.
void quantize_linears(nn::CausalLm& model, const std::string& weights);

// Throws DataError where the tokenizer has ids that the model has no embedding for.
void require_vocabulary(const text::Tokenizer& tokenizer, int64_t vocab_size,
                        const io::ModelFolder& folder);

// Ready for inference: nothing trains. Throws DataError, ConfigError.
LoadedModel load_model(const ModelRequest& request, const Log& log);

// Gives the parameters of a model that came without values their own, and forgets where they are
// from.
void read_values(LoadedModel& loaded);

ModelRequest model_request(const settings::ModelFlags& flags, const std::string& template_path,
                           const device::Placement& placement);
// For a model that generates. Throws ConfigError for what the device can not hold to.
ModelRequest model_request(const settings::ModelFlags& flags, const settings::EngineFlags& engine,
                           const std::string& template_path, const device::Placement& placement);

// Of an adapter folder: its configuration and every byte of its weights.
std::string adapter_fingerprint(const std::filesystem::path& folder);

// Of every value of the model: tells weights apart whose files look alike to
// io::model_fingerprint().
std::string weights_checksum(const LoadedModel& loaded);

}  // namespace convoy::recipes
