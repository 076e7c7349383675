// SPDX-License-Identifier: Apache-2.0
//
// The tensors of a checkpoint, matched with what a model declares.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "convoy/core/io/model_folder.h"
#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/quantization_config.h"
#include "convoy/model/models/stored_codes.h"
#include "convoy/model/nn/decoder_block.h"

namespace convoy::models {

// The weight files of a folder, matched both ways with what a model declares.
class CheckpointWeights {
 public:
  // Throws DataError listing every tensor that is missing, unexpected, or of another shape or a
  // type that is no float. Throws ConfigError when the folder is quantised in another way than
  // `coding`.
  CheckpointWeights(const io::ModelFolder& folder, const architecture::DecoderSpec& spec,
                    families::TextModel layout, WeightCoding coding = {});

  // Reads a weight by a name that the model declares. Codes are decoded.
  at::Tensor read(const std::string& name, at::ScalarType dtype) const;
  // Reads elements from `begin` on, in row-major order, into `out`: flat, of any float type and
  // device.
  void read_elements(const std::string& name, int64_t begin, const at::Tensor& out) const;
  // For a quantised weight: the type of the original weight.
  at::ScalarType stored_dtype(const std::string& name) const;

  // The format in which this weight of a linear map is to be held; none: not quantised. Stored
  // codes are kept.
  std::optional<kernels::BitsandbytesFormat> coding_of(const std::string& name) const;
  // The codes as they are stored; if none are stored, encodes the weight in `dtype`. Throws
  // DataError if the weight is not finite.
  kernels::BitsandbytesWeight read_bitsandbytes(const std::string& name,
                                                at::ScalarType dtype) const;
  const io::TensorView& view(const std::string& name) const { return *by_name_.at(name); }
  const StoredCodes* find_stored_codes(const std::string& name) const;  // null: stored as numbers
  // Tensors without a use in the text model: tensors of a vision tower, tensors that are computed.
  // Sorted by name.
  const std::vector<const io::TensorView*>& others() const { return others_; }

 private:
  void find_codes(const architecture::DecoderSpec& spec, const io::ModelFolder& folder);
  void match(const architecture::DecoderSpec& spec) const;
  void check_tied_head(const architecture::DecoderSpec& spec) const;

  std::string place_;
  WeightCoding coding_;
  std::unordered_map<std::string, StoredCodes> codes_;  // by the weight's name
  io::ModelWeights weights_;
  std::unordered_map<std::string, const io::TensorView*> by_name_;  // the model's own names
  std::vector<const io::TensorView*> others_;
};

}  // namespace convoy::models
