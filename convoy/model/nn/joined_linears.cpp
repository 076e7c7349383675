// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/joined_linears.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/matrix_product/matrix_product.h"

namespace convoy::nn {
namespace {

using Parts = const std::vector<Linear*>&;

// The tensors one after another in one tensor. Each of `tensors` becomes a view of it, also where
// other code holds the tensor.
at::Tensor moved_together(const std::vector<at::Tensor>& tensors) {
  const at::Tensor whole = at::cat(tensors);
  int64_t begin = 0;
  for (at::Tensor tensor : tensors) {
    const int64_t rows = tensor.size(0);
    tensor.set_data(whole.narrow(0, begin, rows));
    begin += rows;
  }
  return whole;
}

bool all_of(Parts parts, bool (*is)(const Linear& first, const Linear& part)) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const Linear* part) { return is(*parts.front(), *part); });
}

// Blocks of 4 bits must end where a weight ends. Nested scales have an offset for each weight.
bool have_joinable_codes(const Linear& first, const Linear& part) {
  const kernels::BitsandbytesWeight& codes = part.coded();
  return codes.format == first.coded().format && !codes.format.nested &&
         (codes.format.type == kernels::CodeType::Int8 || codes.numel() % codes.format.block == 0);
}

kernels::BitsandbytesWeight joined_codes(Parts parts) {
  std::vector<at::Tensor> codes, absmax;
  kernels::BitsandbytesWeight whole = parts.front()->coded();
  whole.shape[0] = 0;
  for (const Linear* part : parts) {
    codes.push_back(part->coded().codes);
    absmax.push_back(part->coded().absmax);
    whole.shape[0] += part->out_features();
  }
  whole.codes = moved_together(codes);
  whole.absmax = moved_together(absmax);
  return whole;
}

// Joins only shapes and types if the weights are codes.
at::Tensor joined_weights(Parts parts) {
  std::vector<at::Tensor> weights;
  for (const Linear* part : parts) weights.push_back(part->weight());
  return parts.front()->is_bitsandbytes() ? at::cat(weights) : moved_together(weights);
}

at::Tensor joined_biases(Parts parts) {
  std::vector<at::Tensor> biases;
  for (const Linear* part : parts)
    if (part->bias().defined()) biases.push_back(part->bias());
  return biases.empty() ? at::Tensor() : moved_together(biases);
}

// The tensor that stores the map's values.
const at::Tensor& stored(const Linear& linear) {
  return linear.is_bitsandbytes() ? linear.coded().codes : linear.weight();
}

bool trains_its_weight(const Linear* part) {
  return part->adapter() == nullptr && part->weight().requires_grad();
}

// Empty where the parts have to be computed one by one.
std::vector<at::Tensor> recorded_together(const std::vector<const Linear*>& parts,
                                          const at::Tensor& x_TI, DrawKey draw_key) {
  if (std::all_of(parts.begin(), parts.end(), trains_its_weight)) {
    std::vector<kernels::TrainedMap> maps;
    for (const Linear* part : parts) maps.push_back({part->weight(), part->bias()});
    return kernels::trained_linears(x_TI, maps);
  }
  const LinearAdapter* const first = parts.front()->adapter();
  return first == nullptr ? std::vector<at::Tensor>()
                          : first->forward_together(parts, x_TI, draw_key);
}

}  // namespace

void JoinedLinears::join(Parts parts) {
  const bool joinable = all_of(parts, [](const Linear& first, const Linear& part) {
    return !part.weight().requires_grad() && !part.is_integer() &&
           !(part.bias().defined() && part.bias().requires_grad()) &&
           part.bias().defined() == first.bias().defined() &&
           part.weight().scalar_type() == first.weight().scalar_type() &&
           part.in_features() == first.in_features() &&
           part.is_bitsandbytes() == first.is_bitsandbytes();
  });
  if (whole_ != nullptr || !joinable) return;
  const bool is_coded = parts.front()->is_bitsandbytes();
  if (is_coded && !all_of(parts, have_joinable_codes)) return;
  const at::NoGradGuard no_grad;
  std::string name;
  for (const Linear* part : parts) name += (name.empty() ? "" : ", ") + part->name();
  whole_ = std::make_unique<Linear>(name, joined_weights(parts), joined_biases(parts));
  if (is_coded) whole_->set_bitsandbytes(joined_codes(parts));
  for (Linear* part : parts) part->weight_changed();
}

void JoinedLinears::quantize(Parts parts, const kernels::IntegerFormat& format) {
  if (!holds(std::vector<const Linear*>(parts.begin(), parts.end()))) {
    whole_.reset();
    for (Linear* part : parts) part->quantize(format);
    return;
  }
  whole_->quantize(format);
  for (Linear* part : parts) part->leave_values_to_joined();
}

bool JoinedLinears::holds(const std::vector<const Linear*>& parts) const {
  return whole_ != nullptr && std::all_of(parts.begin(), parts.end(), [&](const Linear* part) {
           const bool has_values = whole_->is_integer()
                                       ? part->is_integer()
                                       : part->is_bitsandbytes() == whole_->is_bitsandbytes() &&
                                             stored(*part).is_alias_of(stored(*whole_));
           return has_values && (part->adapter() == nullptr || part->adapter()->adds());
         });
}

std::vector<at::Tensor> JoinedLinears::forward(const std::vector<const Linear*>& parts,
                                               const at::Tensor& x_TI, DrawKey draw_key) const {
  std::vector<at::Tensor> outputs;
  const bool records =
      at::GradMode::is_enabled() &&
      (x_TI.requires_grad() ||
       std::any_of(parts.begin(), parts.end(), [](const Linear* part) { return part->trains(); }));
  if (records) outputs = recorded_together(parts, x_TI, draw_key);
  if (!outputs.empty()) return outputs;
  if (records || draw_key || !holds(parts)) {
    for (const Linear* part : parts) outputs.push_back(part->forward(x_TI, draw_key));
    return outputs;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor whole_TO = whole_->base_forward(x_TI);
  int64_t begin = 0;
  for (const Linear* part : parts) {
    outputs.push_back(whole_TO.narrow(1, begin, part->out_features()));
    begin += part->out_features();
    if (part->adapter() != nullptr) part->adapter()->add_to(outputs.back(), x_TI);
  }
  return outputs;
}

}  // namespace convoy::nn
