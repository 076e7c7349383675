// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/signal_classifier.h"

#include <ATen/ATen.h>

#include <array>
#include <cmath>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/model/kernels/dropout/dropout.h"
#include "convoy/model/kernels/matrix_product/matrix_product.h"

namespace convoy::nn {

// One stream of numbers for all tensors, in the order in which torch.nn makes them.
class TorchInitialisation {
 public:
  TorchInitialisation(uint64_t seed, at::Device device)
      : generator_(at::detail::createCPUGenerator(seed)), device_(device) {}

  at::Tensor operator()(const std::string&, const std::vector<int64_t>& shape, int64_t fan_in) {
    // The bound of kaiming_uniform_(a=sqrt(5)) for weights, in the arithmetic of its source.
    const double root = std::sqrt(static_cast<double>(fan_in));
    const double gain = std::sqrt(2.0 / (1 + std::pow(std::sqrt(5.0), 2)));
    const double bound = shape.size() > 1 ? std::sqrt(3.0) * (gain / root) : 1 / root;
    return at::empty(shape).uniform_(-bound, bound, generator_).to(device_);
  }

 private:
  at::Generator generator_;
  at::Device device_;
};

namespace {

std::string layer_name(size_t layer) { return fmt::format("classifier.{}", layer); }

SignalEncoder make_encoder(const SignalClassifierSpec& spec, TorchInitialisation& values,
                           at::Device device) {
  return SignalEncoder(
      spec.encoder,
      [&values](const std::string& name, const std::vector<int64_t>& shape, int64_t fan_in) {
        return values(name, shape, fan_in);
      },
      device);
}

}  // namespace

SignalClassifier::SignalClassifier(const SignalClassifierSpec& spec, uint64_t seed,
                                   at::Device device)
    : SignalClassifier(spec, TorchInitialisation(seed, device), device) {}

SignalClassifier::SignalClassifier(const SignalClassifierSpec& spec, TorchInitialisation values,
                                   at::Device device)
    : spec_(spec), device_(device), encoder_(make_encoder(spec, values, device)) {
  if (spec.num_classes < 2)
    throw ConfigError(fmt::format("wanted at least two classes, found {}", spec.num_classes),
                      {.hint = "add windows with another label"});
  std::vector<int64_t> widths = spec.hidden;
  widths.push_back(spec.num_classes);
  int64_t inputs = encoder_.features();
  for (const int64_t width : widths) {
    const std::string name = layer_name(layers_.size());
    Layer layer;
    layer.weight_OI = values(name + ".weight", {width, inputs}, inputs);
    layer.bias_O = values(name + ".bias", {width}, inputs);
    layers_.push_back(std::move(layer));
    inputs = width;
  }
  for (const NamedTensor& parameter : parameters()) parameter.value.requires_grad_();
}

at::Tensor SignalClassifier::scores(const at::Tensor& x_NLC, SignalPass pass,
                                    DrawKey draw_key) const {
  at::Tensor x_NF;
  {
    const at::AutoGradMode records(at::GradMode::is_enabled() && !frozen_);
    SignalPass of_encoder = pass;
    of_encoder.training = pass.training && !frozen_;
    x_NF = encoder_.forward(x_NLC, of_encoder, residency_, 0);
  }
  const size_t first_unit = spec_.encoder.widths.size();
  for (size_t index = 0; index < layers_.size(); ++index) {
    const UnitUse use(residency_, first_unit + index);
    const Layer& layer = layers_[index];
    x_NF = kernels::trained_linear(use.enter(x_NF), layer.weight_OI, layer.bias_O);
    if (index + 1 < layers_.size()) {
      x_NF = x_NF.relu();
      const std::array<uint64_t, 2> words = {draw_key.value_or(0), index};
      if (draw_key) x_NF = kernels::dropout(x_NF, spec_.dropout, mix_seed(words));
    }
    x_NF = use.leave(x_NF);
  }
  return x_NF;
}

void SignalClassifier::freeze_encoder() {
  frozen_ = true;
  for (const NamedTensor& parameter : encoder_.parameters()) parameter.value.requires_grad_(false);
}

std::vector<NamedTensor> SignalClassifier::layer_parameters(size_t layer) const {
  return {{layer_name(layer) + ".weight", layers_[layer].weight_OI},
          {layer_name(layer) + ".bias", layers_[layer].bias_O}};
}

std::vector<NamedTensor> SignalClassifier::parameters() const {
  std::vector<NamedTensor> all = encoder_.parameters();
  for (size_t layer = 0; layer < layers_.size(); ++layer)
    for (NamedTensor& parameter : layer_parameters(layer)) all.push_back(std::move(parameter));
  return all;
}

std::vector<NamedTensor> SignalClassifier::trained_parameters() const {
  std::vector<NamedTensor> trained = parameters();
  std::erase_if(trained,
                [](const NamedTensor& parameter) { return !parameter.value.requires_grad(); });
  return trained;
}

std::vector<Unit> SignalClassifier::units() const {
  std::vector<Unit> units = encoder_.units();
  for (size_t layer = 0; layer < layers_.size(); ++layer)
    units.push_back({.name = layer_name(layer), .frozen = {}, .trained = layer_parameters(layer)});
  return units;
}

}  // namespace convoy::nn
