// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/dtype.h"

#include "convoy/core/base/error.h"

namespace convoy::device {

at::ScalarType parse_dtype(std::string_view name) {
  if (name == "fp32") return at::kFloat;
  if (name == "bf16") return at::kBFloat16;
  if (name == "fp16") return at::kHalf;
  throw ConfigError(fmt::format("dtype must be fp32, bf16 or fp16, found `{}`", name),
                    {.hint = "take bf16, or fp32 where memory allows"});
}

std::string dtype_name(at::ScalarType dtype) {
  if (dtype == at::kFloat) return "fp32";
  if (dtype == at::kBFloat16) return "bf16";
  if (dtype == at::kHalf) return "fp16";
  return c10::toString(dtype);
}

}  // namespace convoy::device
