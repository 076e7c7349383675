// SPDX-License-Identifier: Apache-2.0
//
// The rest of a checkpoint that holds more than a text model: a vision tower, a projector. The rest
// is kept when the text model in it is saved.
#pragma once

#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/model_folder.h"
#include "convoy/model/models/weights.h"

namespace convoy::models {

enum class Extent {
  Whole,      // the checkpoint, with all other tensors unchanged
  TextAlone,  // a checkpoint of its own
};

inline Extent extent_of(bool text_only) { return text_only ? Extent::TextAlone : Extent::Whole; }

bool holds_more_than_text(const io::ModelFolder& source);

class CheckpointRest {
 public:
  // Empty for a source that holds a text model alone. Throws DataError.
  CheckpointRest(const io::ModelFolder& source, Extent extent);

  // The name under which a parameter of the text model is saved: its name in the source.
  std::string saved_name(const std::string& parameter) const;
  // Reads the bytes of the source, which stays open. Not all tensors are in memory at once.
  std::vector<io::TensorSource> sources() const;

 private:
  std::shared_ptr<const CheckpointWeights> weights_;  // null: there is no rest
};

// The type of all tensors of floats; none: they have several types.
std::optional<at::ScalarType> one_dtype(const std::vector<io::TensorSource>& tensors);

}  // namespace convoy::models
