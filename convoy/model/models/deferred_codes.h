// SPDX-License-Identifier: Apache-2.0
//
// Coded weights with parts that have no memory yet: a rank reads only the bytes of a part that it
// needs (nn::DeferredValues).
#pragma once

#include <memory>
#include <string>

#include "convoy/model/models/weights.h"
#include "convoy/model/nn/deferred_values.h"

namespace convoy::models {

class DeferredCodes {
 public:
  DeferredCodes(std::shared_ptr<const CheckpointWeights> weights, at::ScalarType dtype,
                at::Device device, nn::DeferredValues& values);

  // Declares a weight that has a coding in `weights`. Errors of reading are thrown by the first
  // read.
  kernels::BitsandbytesWeight declare(const std::string& name, at::IntArrayRef shape);

 private:
  // The weight that was encoded last: its parts are read one after another.
  struct Encoded {
    std::string name;
    kernels::BitsandbytesWeight weight;
  };

  std::shared_ptr<const CheckpointWeights> weights_;
  at::ScalarType dtype_;
  at::Device device_;
  nn::DeferredValues& values_;
  std::shared_ptr<Encoded> encoded_ = std::make_shared<Encoded>();
};

}  // namespace convoy::models
