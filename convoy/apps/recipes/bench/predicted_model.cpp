// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/predicted_model.h"

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/nn/decoder.h"

namespace convoy::recipes {

architecture::DecoderSpec spec_of(const settings::BenchPredictFlags& flags) {
  if (flags.config.empty()) return families::read_decoder_spec(io::ModelFolder::open(flags.model));
  return families::read_decoder_spec(
      io::JsonReader(io::read_json_file(flags.config), flags.config));
}

std::unique_ptr<nn::CausalLm> model_of_sizes(
    const architecture::DecoderSpec& spec, const at::TensorOptions& options, Values values,
    const std::optional<kernels::BitsandbytesFormat>& format) {
  auto model =
      std::make_unique<nn::Decoder>(spec, [&](const architecture::ParameterDeclaration& declared) {
        at::Tensor parameter = at::empty(declared.shape, options);
        if (values == Values::Random)
          declared.shape.size() == 1 ? parameter.fill_(1) : parameter.normal_(0, 0.02);
        return parameter;
      });
  model->set_requires_grad(false);
  if (!format) return model;
  if (values == Values::Random) {
    code_linears(*model, *format);
    return model;
  }
  const at::ScalarType dtype = options.dtype().toScalarType();
  for (nn::Linear* linear : model->block_linears())
    linear->set_bitsandbytes(
        kernels::declare_bitsandbytes_weight(*format, linear->weight().sizes(), dtype, options));
  return model;
}

}  // namespace convoy::recipes
