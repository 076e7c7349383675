// SPDX-License-Identifier: Apache-2.0
//
// The supported families of models, and the specification that config.json gives of a model. Adding
// a family is one folder here and one line in family.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "convoy/core/io/model_folder.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::families {

enum class TextModel {
  Whole,
  Nested
};  // Nested: the language model of a multimodal checkpoint (Gemma-3 4B and up)

struct Family {
  const char* model_type;
  const char* architecture;  // transformers' class of the text model
  architecture::DecoderSpec (*read_spec)(const io::JsonReader& config);
  TextModel layout;
  const char* models;           // the best known models, for people
  const char* usual_text = "";  // Nested: model_type of a text_config that names none
};

std::span<const Family> all_families();
std::vector<std::string> supported_model_types();

// The family that model_type of config.json names. Throws DataError.
const Family& family_of(const io::ModelFolder& folder);

// The family of the folder's text model: its own family, or the family of text_config. Throws
// DataError.
const Family& text_family_of(const io::ModelFolder& folder);

// The specification in config.json, without the weights. Throws DataError.
architecture::DecoderSpec read_decoder_spec(const io::ModelFolder& folder);
architecture::DecoderSpec read_decoder_spec(const io::JsonReader& config);

// Ids that end a text: eos_token_id of generation_config.json and of config.json, sorted, without
// repeats.
std::vector<int32_t> end_token_ids(const io::ModelFolder& folder);

}  // namespace convoy::families
