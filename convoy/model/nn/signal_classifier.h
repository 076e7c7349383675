// SPDX-License-Identifier: Apache-2.0
//
// An encoder of sensor windows with a head of linear layers: one score for each class. Independent
// of ranks and files.
#pragma once

#include <cstdint>
#include <vector>

#include "convoy/model/nn/linear.h"
#include "convoy/model/nn/signal_encoder.h"

namespace convoy::nn {

struct SignalClassifierSpec {
  SignalEncoderSpec encoder;
  std::vector<int64_t> hidden = {512};  // widths of the head's layers before the last
  double dropout = 0.1;                 // after each hidden layer
  int64_t num_classes = 0;
};

class TorchInitialisation;  // signal_classifier.cpp

class SignalClassifier {
 public:
  // Weights are drawn as torch.nn draws Conv1d and Linear after torch.manual_seed(seed): the same
  // numbers, on every device. Throws ConfigError.
  SignalClassifier(const SignalClassifierSpec& spec, uint64_t seed, at::Device device = at::kCPU);

  // x [N, L, C] fp32 -> scores [N, classes], fp32. `draw_key`: dropout is drawn from it. A frozen
  // encoder never trains.
  at::Tensor scores(const at::Tensor& x_NLC, SignalPass pass, DrawKey draw_key) const;

  // The encoder's parameters and running statistics do not change from now on.
  void freeze_encoder();
  bool encoder_is_frozen() const { return frozen_; }

  // In checkpoint order, with the parameters of a frozen encoder.
  std::vector<NamedTensor> parameters() const;
  std::vector<NamedTensor> trained_parameters() const;
  std::vector<NamedTensor> buffers() const { return encoder_.buffers(); }
  // The same as in nn::CausalLm.
  std::vector<Unit> units() const;
  void set_residency(Residency* residency) { residency_ = residency; }
  Residency* residency() const { return residency_; }

  const SignalClassifierSpec& spec() const { return spec_; }
  at::Device device() const { return device_; }

 private:
  struct Layer {
    at::Tensor weight_OI;
    at::Tensor bias_O;
  };
  SignalClassifier(const SignalClassifierSpec& spec, TorchInitialisation values, at::Device device);
  std::vector<NamedTensor> layer_parameters(size_t layer) const;

  SignalClassifierSpec spec_;
  at::Device device_;
  SignalEncoder encoder_;
  std::vector<Layer> layers_;
  bool frozen_ = false;
  Residency* residency_ = nullptr;
};

}  // namespace convoy::nn
