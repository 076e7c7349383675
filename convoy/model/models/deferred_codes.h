// SPDX-License-Identifier: Apache-2.0
//
// Coded weights whose parts have no memory yet: who needs some bytes of a part reads those
// (nn::DeferredValues).
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

  // Of a weight that `weights` has a coding for. What reading throws, the first read throws.
  kernels::CodedWeight declare(const std::string& name, at::IntArrayRef shape);

 private:
  // The weight that was encoded last: its parts are wanted one after another.
  struct Encoded {
    std::string name;
    kernels::CodedWeight weight;
  };

  std::shared_ptr<const CheckpointWeights> weights_;
  at::ScalarType dtype_;
  at::Device device_;
  nn::DeferredValues& values_;
  std::shared_ptr<Encoded> encoded_ = std::make_shared<Encoded>();
};

}  // namespace convoy::models
