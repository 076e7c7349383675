// SPDX-License-Identifier: Apache-2.0
//
// Maps windows of sensor signals to features: stages of convolution, batch norm, ReLU and pooling.
// Shapes: N windows, L rows (times), C channels (sensors), F features.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convoy/model/kernels/conv_stage/conv_stage.h"
#include "convoy/model/nn/named_tensor.h"
#include "convoy/model/nn/unit.h"

namespace convoy::nn {

// The treatment of the channels of a window.
enum class ChannelPooling {
  Flatten,  // one encoder sees each channel alone; all features, channel after channel
  Average,  // as Flatten, but the mean of the channels' features
  First,    // as Flatten, but only the features of the first channel
  Joint,    // the encoder sees all channels together
};

struct SignalEncoderSpec {
  int64_t num_channels = 0;
  int64_t window_rows = 0;
  ChannelPooling pooling = ChannelPooling::Joint;
  std::vector<int64_t> widths = {64, 128, 256};   // channels out, by stage
  std::vector<int64_t> kernel_sizes = {5, 5, 3};  // odd
};

// Options of a pass.
struct SignalPass {
  bool training = false;         // batch norm by the batch, which updates the running statistics
  bool keeps_statistics = true;  // false: the running statistics do not change
  bool bf16 = false;
};

// Makes a tensor of a name and shape. `fan_in`: the number of inputs of each output.
using SignalSource = std::function<at::Tensor(const std::string& name,
                                              const std::vector<int64_t>& shape, int64_t fan_in)>;

class SignalEncoder {
 public:
  // Parameters are read from `source` in their order, "encoder.0.conv.weight" first. Throws
  // ConfigError for a spec with windows too short for its stages or with lists that do not fit.
  SignalEncoder(SignalEncoderSpec spec, const SignalSource& source, at::Device device);

  // x [N, L, C] fp32 -> [N, features()]. Differentiable where the pass trains. Tells `residency`
  // (may be null) of its units, from `first_unit` on.
  at::Tensor forward(const at::Tensor& x_NLC, const SignalPass& pass, Residency* residency,
                     size_t first_unit) const;

  int64_t features() const;
  std::vector<NamedTensor> parameters() const;
  std::vector<NamedTensor> buffers() const;  // running statistics
  // One unit for each stage, "encoder.0", as trained or frozen at the time of the call.
  std::vector<Unit> units() const;
  const SignalEncoderSpec& spec() const { return spec_; }

 private:
  at::Tensor run_stages(at::Tensor x_NLC, const SignalPass& pass, Residency* residency,
                        size_t first_unit) const;
  std::vector<NamedTensor> stage_parameters(size_t stage) const;
  std::vector<NamedTensor> stage_buffers(size_t stage) const;

  SignalEncoderSpec spec_;
  std::vector<kernels::ConvStageTensors> stages_;
};

}  // namespace convoy::nn
