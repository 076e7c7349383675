// SPDX-License-Identifier: Apache-2.0
//
// Loads the parts of a model folder that commands need: weights, tokenizer, chat template, and an
// adapter on top.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/settings/sampling_choice.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/models/quantization_config.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/deferred_values.h"
#include "convoy/model/sizing/generation_memory.h"

namespace convoy::recipes {

struct ModelRequest {
  std::string name;  // folder or hub id
  std::string revision = "main";
  std::string adapter = {};  // PEFT folder or LoRA file in GGUF; empty = none
  // fp32 or bf16; auto: by the rule of sizing/compute_dtype.h for the device.
  std::string dtype = "fp32";
  std::string dtype_reason = {};        // why the rule chose `dtype`; empty = the caller named it
  std::string dtype_flag = "--dtype ";  // in messages: the flag or key that sets the type
  bool has_bf16 = true;                 // property of the GPU; ignored for a CPU
  std::string template_path = {};
  std::string eos_token = {};  // replaces the tokenizer's EOS; empty = keep it
  at::Device device = at::kCPU;
  bool joins_projections = false;     // for inference only
  bool deferred = false;              // parameters come without memory
  std::string weights = "model";      // model, int8 or int4: linear layers, for inference
  std::string activations = "model";  // model, or int8 with int8 or int4 weights on CPUs
  models::WeightCoding coding = {};
};

// For a model name that is a PEFT adapter's folder: its base, and the folder.
struct AdapterStart {
  std::string base;
  std::string adapter;
};
std::optional<AdapterStart> adapter_start(const std::string& name, const Log& log);

// Throws DataError when there is no adapter at `adapter`. Call it before the model is read. Warns
// of unused keys in the adapter's file.
void require_adapter(const std::filesystem::path& adapter, const Log& log);

// A model before its weights are read.
struct OpenedModel {
  ModelRequest request;  // names base and adapter if its name was an adapter
  std::string dtype;     // settled
  io::ModelFolder folder;
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  std::string given_template;  // see LoadedModel

  const text::ChatTemplate* template_or_null() const {
    return chat_template ? &*chat_template : nullptr;
  }
};

struct LoadedModel {
  io::ModelFolder folder;
  text::Tokenizer tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  std::unique_ptr<nn::CausalLm> model;
  std::unique_ptr<nn::DeferredValues> values;  // not null: the model was created without values
  std::optional<adapters::LoraModel> lora;
  std::vector<int32_t> end_ids;  // ids that end every text, from the files of model and adapter
  std::vector<int32_t> turn_end_ids;  // ids that also end answers in chats, from the template
  // Text of the chat template when it is not the template of the model's folder, but from
  // ModelRequest::template_path or the adapter's chat_template.jinja.
  std::string given_template;

  const text::ChatTemplate* template_or_null() const {
    return chat_template ? &*chat_template : nullptr;
  }
};

// `type`: nf4, fp4 or int8; none and auto: as stored in the files.
models::WeightCoding weight_coding(const std::string& type, bool double_quant,
                                   int64_t block_size = 64,
                                   std::vector<std::string> skip_modules = {});
// "none", or the format of the model's weights: "nf4, blocks of 64, double".
std::string coding_text(nn::CausalLm& model);

// Quantises the linear layers of the blocks.
void code_linears(nn::CausalLm& model, const kernels::BitsandbytesFormat& format);

// Throws ConfigError for --double-quant with a format without blocks, and for two formats of the
// same weights. `weights`: from EngineFlags.
void require_one_format(const std::string& quantization, bool double_quant,
                        const std::string& weights = "model");

// Throws ConfigError for activations in 8 bits with weights that are not quantised, or on a GPU.
// `weights`, `activations`: from EngineFlags.
void require_codes_of_activations(const std::string& activations, const std::string& weights,
                                  at::Device device);

// `weights`: int8 or int4. For inference only.
void quantize_linears(nn::CausalLm& model, const std::string& weights,
                      const std::string& activations = "model");

// Throws DataError when the tokenizer has ids without an embedding in the model.
void require_vocabulary(const text::Tokenizer& tokenizer, int64_t vocab_size,
                        const io::ModelFolder& folder);

// Logs what will be loaded, and in which type. Throws DataError, ConfigError.
OpenedModel open_model(const ModelRequest& request, const Log& log);
// Logs the memory that an engine needs for these rows, before the weights are read. Warns when it
// exceeds the free memory. `processes_on_host`: number of processes that share the memory of a CPU.
void say_generation_memory(const OpenedModel& model, const settings::EngineFlags& engine,
                           const sizing::GenerationRows& rows, int processes_on_host,
                           const Log& log);
// Returns the model ready for inference: no parameter is trainable. Throws DataError, ConfigError.
LoadedModel load_weights(OpenedModel opened, const Log& log);
LoadedModel load_model(const ModelRequest& request, const Log& log);

// Reads the values of parameters that were created without them, and releases their source.
void read_values(LoadedModel& loaded);

ModelRequest model_request(const settings::ModelFlags& flags, const std::string& template_path,
                           const device::RankDevice& rank_device);
// The request for a model that generates. Throws ConfigError for options that the device does not
// support.
ModelRequest model_request(const settings::ModelFlags& flags, const settings::EngineFlags& engine,
                           const std::string& template_path, const device::RankDevice& rank_device);

// Reads what the model's generation_config.json says of sampling. Throws DataError.
settings::ModelSampling model_sampling(const io::ModelFolder& folder);

// Ids that end the texts of an adapter: the ids in its generation_config.json, and the EOS of a
// tokenizer that was saved beside it. A GGUF file names none. Throws DataError.
std::vector<int32_t> adapter_end_ids(const std::filesystem::path& folder,
                                     const text::Tokenizer& tokenizer);

// Checksum over every value of the model: distinguishes weights whose files have equal
// io::model_fingerprint().
std::string weights_checksum(const LoadedModel& loaded);

}  // namespace convoy::recipes
