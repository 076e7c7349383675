// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/registry.h"

#include <fmt/format.h>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/refillable_tensor.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/deferred_codes.h"
#include "convoy/model/models/weights.h"
#include "convoy/model/nn/decoder.h"

namespace convoy::models {
namespace {

void require_compute_dtype(at::ScalarType dtype) {
  if (dtype == at::kFloat || dtype == at::kBFloat16) return;
  throw ConfigError(fmt::format("models run in fp32 or bf16, not {}", at::toString(dtype)),
                    {.key = "model.dtype", .hint = "fp16 overflows in Gemma; use bf16"});
}

bool is_held_as_bitsandbytes(const CheckpointWeights& weights,
                             const architecture::ParameterDeclaration& parameter) {
  return architecture::is_map_of_blocks(parameter) && weights.coding_of(parameter.name).has_value();
}

// Has the shape of a weight that the linear map gets as codes, and no values.
at::Tensor shape_alone(const architecture::ParameterDeclaration& parameter, at::ScalarType dtype) {
  return at::empty(parameter.shape, at::TensorOptions().dtype(dtype).device(at::kMeta));
}

}  // namespace

std::unique_ptr<nn::CausalLm> load_causal_lm(const io::ModelFolder& folder, at::ScalarType dtype,
                                             at::Device device, const WeightCoding& coding,
                                             const Advance& advance) {
  require_compute_dtype(dtype);
  const CheckpointWeights weights = open_weights(folder, coding);
  const architecture::DecoderSpec spec = families::read_decoder_spec(folder);
  const auto total = std::ssize(architecture::declare_parameters(spec));
  int64_t done = 0;
  const auto advanced = [&](const auto& value) {
    if (advance) advance(++done, total);
    return value;
  };
  auto model =
      std::make_unique<nn::Decoder>(spec, [&](const architecture::ParameterDeclaration& parameter) {
        if (is_held_as_bitsandbytes(weights, parameter)) return shape_alone(parameter, dtype);
        return advanced(weights.read(parameter.name, dtype).to(device));
      });
  for (nn::Linear* linear : model->block_linears())
    if (linear->weight().is_meta())
      linear->set_bitsandbytes(
          advanced(weights.read_bitsandbytes(linear->name() + ".weight", dtype).to(device)));
  return model;
}

std::unique_ptr<nn::CausalLm> declare_causal_lm(const io::ModelFolder& folder, at::ScalarType dtype,
                                                at::Device device, nn::DeferredValues& values,
                                                const WeightCoding& coding) {
  require_compute_dtype(dtype);
  const auto weights = std::make_shared<const CheckpointWeights>(open_weights(folder, coding));
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  auto model = std::make_unique<nn::Decoder>(
      families::read_decoder_spec(folder), [&](const architecture::ParameterDeclaration& declared) {
        if (is_held_as_bitsandbytes(*weights, declared)) return shape_alone(declared, dtype);
        const at::Tensor parameter = device::tensor_without_memory(declared.shape, options);
        values.set(parameter,
                   [weights, name = declared.name](int64_t begin, const at::Tensor& out) {
                     weights->read_elements(name, begin, out);
                   });
        return parameter;
      });
  DeferredCodes codes(weights, dtype, device, values);
  for (nn::Linear* linear : model->block_linears())
    if (linear->weight().is_meta())
      linear->set_bitsandbytes(codes.declare(linear->name() + ".weight", linear->weight().sizes()));
  return model;
}

CheckpointWeights open_weights(const io::ModelFolder& folder, const WeightCoding& coding) {
  const families::Family& family = families::family_of(folder);
  return CheckpointWeights(folder, family.read_spec(folder.config()), family.layout, coding);
}

std::map<std::string, at::ScalarType> stored_dtypes(const io::ModelFolder& folder) {
  const architecture::DecoderSpec spec = families::read_decoder_spec(folder);
  const CheckpointWeights weights = open_weights(folder);
  std::map<std::string, at::ScalarType> dtypes;
  for (const architecture::ParameterDeclaration& parameter : architecture::declare_parameters(spec))
    dtypes[parameter.name] = weights.stored_dtype(parameter.name);
  return dtypes;
}

}  // namespace convoy::models
