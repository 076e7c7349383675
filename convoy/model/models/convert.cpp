// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/convert.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/export.h"
#include "convoy/model/models/registry.h"

namespace convoy::models {
namespace {

constexpr int64_t kConvertedPiece = int64_t{1} << 22;

void refuse_infinite(const std::string& name, const at::Tensor& values, at::ScalarType dtype) {
  if (dtype == at::kFloat || values.isfinite().all().item<bool>()) return;
  throw NumericError(
      fmt::format("{} holds a value that {} cannot hold", name, device::dtype_name(dtype)),
      {.key = name, .hint = "store the model in fp32 or bf16"});
}

}  // namespace

void convert_model(const io::ModelFolder& source, const std::filesystem::path& folder,
                   std::optional<at::ScalarType> dtype,
                   const std::function<void(int64_t done, int64_t total)>& advance,
                   int64_t max_shard_bytes) {
  const auto weights = std::make_shared<const CheckpointWeights>(open_weights(source));
  const std::vector<architecture::ParameterDeclaration> parameters =
      architecture::declare_parameters(families::read_decoder_spec(source));
  const auto total = static_cast<int64_t>(parameters.size());
  const auto done = std::make_shared<int64_t>(0);
  std::vector<io::TensorSource> tensors;
  for (const architecture::ParameterDeclaration& parameter : parameters) {
    const at::ScalarType stored = dtype.value_or(weights->stored_dtype(parameter.name));
    tensors.push_back(
        {.name = parameter.name,
         .dtype = device::stored_dtype(stored),
         .shape = parameter.shape,
         .produce = [=, name = parameter.name, &advance](const io::ByteSink& sink) {
           int64_t elements = 1;
           for (const int64_t size : parameter.shape) elements *= size;
           for (int64_t begin = 0; begin < elements; begin += kConvertedPiece) {
             const int64_t count = std::min(kConvertedPiece, elements - begin);
             const at::Tensor piece = at::empty({count}, stored);
             weights->read_elements(name, begin, piece);
             refuse_infinite(name, piece, stored);
             sink({static_cast<const std::byte*>(piece.const_data_ptr()), piece.nbytes()});
           }
           advance(++*done, total);
         }});
  }
  // config.json has one type: the type of the largest weights.
  const at::ScalarType named = dtype.value_or(weights->stored_dtype(parameters.front().name));
  std::map<std::string, std::string> files = model_files(source, Extent::TextAlone, named);
  io::write_model_weights(folder, std::move(tensors), max_shard_bytes);
  // Writes config.json last, so that a folder that has it is complete.
  const auto config = files.extract("config.json");
  for (const auto& [name, text] : files) write_file_atomic(folder / name, text);
  write_file_atomic(folder / "config.json", config.mapped());
}

}  // namespace convoy::models
