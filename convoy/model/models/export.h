// SPDX-License-Identifier: Apache-2.0
//
// Writes a whole model folder in Hugging Face layout, which transformers and Convoy load.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "convoy/core/io/model_folder.h"
#include "convoy/model/models/checkpoint_rest.h"
#include "convoy/model/models/result_ends.h"
#include "convoy/model/nn/causal_lm.h"

namespace convoy::models {

struct ExportConfig {
  at::ScalarType dtype = at::kFloat;                   // fp32, bf16 or fp16
  std::map<std::string, at::ScalarType> own_dtypes{};  // by parameter, beats `dtype`
  Extent extent = Extent::Whole;
  int64_t max_shard_bytes = 5'000'000'000;
  ResultEnds ends{};
  std::string chat_template{};  // text of the template; empty: the source's template
  // When the model's residency is collective every rank exports, and only one writes.
  bool writes = true;
};

// `source`: the folder `model` was loaded from. Its config.json is kept, except dtype and
// architectures; tokenizer, chat template and generation config are copied. Where a text model is
// nested in it (Gemma-3 4B and up), `extent` says whether the rest of the checkpoint is written
// with it, under the names of the source and with the files of its processor, or the text model
// becomes a checkpoint of its own. Adapters inside the model are not written: merge them first. A
// tied head is left out. Throws NumericError, before anything is written, when rounding would make
// a finite weight infinite; IoError, DataError.
void export_model(nn::CausalLm& model, const io::ModelFolder& source,
                  const std::filesystem::path& folder, const ExportConfig& config);

// Everything of an export but the weights, by file name: config.json for `dtype` (none: the dtype
// of the source), tokenizer, chat template, generation config, with `ends`. `chat_template`: the
// text that takes the place of all templates of the source, unless it is empty. A folder that
// already holds model.safetensors becomes a complete model folder with them. Throws DataError.
std::map<std::string, std::string> model_files(const io::ModelFolder& source, Extent extent,
                                               std::optional<at::ScalarType> dtype,
                                               const ResultEnds& ends = {},
                                               const std::string& chat_template = {});

}  // namespace convoy::models
