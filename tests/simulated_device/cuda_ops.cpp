// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/cuda_ops.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace convoy::simulated {
namespace {

// Kernels of CUDA itself, and formulas of other ops that any device takes.
constexpr std::array<const char*, 4> kHeaders = {
    "_cuda_dispatch.h", "_compositeexplicitautograd_dispatch.h",
    "_compositeexplicitautogradnonfunctional_dispatch.h", "_compositeimplicitautograd_dispatch.h"};

// cuBLAS has them for floating-point numbers only (aten/src/ATen/native/cuda/Blas.cpp).
constexpr std::array<std::string_view, 8> kFloatProducts = {"mm",    "addmm",  "bmm", "baddbmm",
                                                            "addmv", "addbmm", "dot", "vdot"};

std::string without(std::string name, std::string_view end) {
  if (name.ends_with(end)) name.resize(name.size() - end.size());
  return name;
}

bool declares(const std::string& header, const std::string& function) {
  std::ifstream file(header);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.find(" " + function + "(") != std::string::npos ||
         text.find(" " + function + "_out(") != std::string::npos;
}

bool has_kernel(const std::string& op) {
  const std::string file = std::string(CONVOY_TORCH_OPS) + "/" + without(op, "_");
  return std::any_of(kHeaders.begin(), kHeaders.end(),
                     [&](const char* header) { return declares(file + header, op); });
}

}  // namespace

void require_cuda_kernel(const c10::FunctionSchema& schema,
                         const std::vector<c10::ScalarType>& types) {
  constexpr std::string_view kNamespace = "aten::";
  if (!schema.name().starts_with(kNamespace)) return;
  const std::string op = schema.name().substr(kNamespace.size());
  static std::mutex mutex;
  static auto* found = new std::map<std::string, bool>;  // read until the very end
  const std::lock_guard lock(mutex);
  const auto known = found->try_emplace(op);
  if (known.second) known.first->second = has_kernel(op);
  TORCH_CHECK(known.first->second, schema.name(), " has no CUDA kernel");
  if (std::find(kFloatProducts.begin(), kFloatProducts.end(), without(op, "_")) ==
      kFloatProducts.end())
    return;
  for (const c10::ScalarType type : types)
    TORCH_CHECK(c10::isFloatingType(type) || c10::isComplexType(type), schema.name(),
                " has no CUDA kernel for ", c10::toString(type));
}

}  // namespace convoy::simulated
