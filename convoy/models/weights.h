// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a checkpoint, matched with what a model declares.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "convoy/io/model_folder.h"
#include "convoy/nn/decoder_block.h"
#include "convoy/nn/decoder_spec.h"

namespace convoy::models {

enum class TextModel {
  Whole,
  Nested
};  // Nested: the language model of a multimodal checkpoint (Gemma-3 4B and up)

// The weight files of a folder, matched both ways with what a model declares.
class CheckpointWeights {
 public:
  // Throws DataError listing every tensor that is missing, unexpected, or of another shape or a type that is no float.
  CheckpointWeights(const io::ModelFolder& folder, const nn::DecoderSpec& spec, TextModel layout);

  // For names that the model declares.
  at::Tensor read(const std::string& name, at::ScalarType dtype) const;
  // Elements from `begin` on, in row-major order, into `out`: flat, of any float type and device.
  void read_elements(const std::string& name, int64_t begin, const at::Tensor& out) const;
  at::ScalarType stored_dtype(const std::string& name) const;

 private:
  void match(const nn::DecoderSpec& spec) const;
  void check_tied_head(const nn::DecoderSpec& spec) const;

  std::string place_;
  io::ModelWeights weights_;
  std::unordered_map<std::string, const io::TensorView*> by_name_;  // the model's own names
};

}  // namespace convoy::models
