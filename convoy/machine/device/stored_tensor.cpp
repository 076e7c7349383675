// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/stored_tensor.h"

#include <array>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::device {
namespace {

constexpr std::array<std::pair<io::Dtype, at::ScalarType>, 14> kTypes = {{
    {io::Dtype::Bool, at::kBool},
    {io::Dtype::U8, at::kByte},
    {io::Dtype::I8, at::kChar},
    {io::Dtype::F8E5M2, at::kFloat8_e5m2},
    {io::Dtype::F8E4M3, at::kFloat8_e4m3fn},
    {io::Dtype::I16, at::kShort},
    {io::Dtype::F16, at::kHalf},
    {io::Dtype::BF16, at::kBFloat16},
    {io::Dtype::I32, at::kInt},
    {io::Dtype::F32, at::kFloat},
    {io::Dtype::F64, at::kDouble},
    {io::Dtype::I64, at::kLong},
    {io::Dtype::U16, at::kUInt16},
    {io::Dtype::U32, at::kUInt32},
}};

}  // namespace

io::Dtype stored_dtype(at::ScalarType dtype) {
  for (const auto& [stored, tensor] : kTypes)
    if (tensor == dtype) return stored;
  throw StateError(fmt::format("safetensors has no type for {}", c10::toString(dtype)));
}

at::ScalarType tensor_dtype(io::Dtype dtype) {
  for (const auto& [stored, tensor] : kTypes)
    if (stored == dtype) return tensor;
  throw StateError(fmt::format("LibTorch has no type for {}", io::dtype_name(dtype)));
}

bool is_float(io::Dtype dtype) {
  return dtype == io::Dtype::F32 || dtype == io::Dtype::BF16 || dtype == io::Dtype::F16 ||
         dtype == io::Dtype::F64;
}

at::Tensor copy_to_tensor(const io::TensorView& view) {
  at::Tensor tensor = at::empty(view.shape, tensor_dtype(view.dtype));
  io::copy_bytes(view, {static_cast<std::byte*>(tensor.mutable_data_ptr()),
                        static_cast<size_t>(tensor.nbytes())});
  return tensor;
}

at::Tensor copy_to_tensor(const io::TensorView& view, at::ScalarType dtype) {
  if (tensor_dtype(view.dtype) == dtype) return copy_to_tensor(view);
  return copy_to_tensor(view).to(dtype);
}

io::TensorSource tensor_source(const std::string& name, const at::Tensor& tensor,
                               std::shared_ptr<PieceReader> reader) {
  if (reader == nullptr) reader = std::make_shared<PieceReader>();
  return {.name = name,
          .dtype = stored_dtype(tensor.scalar_type()),
          .shape = tensor.sizes().vec(),
          .produce = [tensor, reader](const io::ByteSink& sink) { reader->read(tensor, sink); }};
}

}  // namespace convoy::device
