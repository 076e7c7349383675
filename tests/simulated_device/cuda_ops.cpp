// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/cuda_ops.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "files/source_folder.h"

namespace convoy::simulated {
namespace {

// Headers that declare CUDA's own kernels, and the formulas of ops that hold for every device.
constexpr std::array<const char*, 4> kHeaders = {
    "_cuda_dispatch.h", "_compositeexplicitautograd_dispatch.h",
    "_compositeexplicitautogradnonfunctional_dispatch.h", "_compositeimplicitautograd_dispatch.h"};

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

using Types = std::set<std::string, std::less<>>;

// Returns for each op the types of the first tensor for which CUDA has kernels, as listed in
// tests/golden/devices.
std::map<std::string, Types> read_types() {
  const std::filesystem::path path =
      testing::source_folder() / "tests/golden/devices/cuda_types.txt";
  std::ifstream file(path);
  TORCH_CHECK(file.is_open(), "could not open ", path.string());
  std::map<std::string, Types> types;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string op;
    words >> op;
    types.try_emplace(op, std::istream_iterator<std::string>(words),
                      std::istream_iterator<std::string>());
  }
  return types;
}

void require_kernel_for(const std::string& op, const std::vector<c10::ScalarType>& types) {
  static const auto* known = new std::map<std::string, Types>(read_types());
  const size_t deciding = op == "where" ? 1 : 0;
  if (types.size() <= deciding) return;
  const auto found = known->find(without(op, "_"));
  TORCH_CHECK(found != known->end(), "the types of aten::", op,
              " on GPUs are not listed: add it to tests/golden/devices/make_cuda_types.py");
  TORCH_CHECK(found->second.contains(c10::toString(types[deciding])), "aten::", op,
              " has no CUDA kernel for ", c10::toString(types[deciding]));
}

}  // namespace

void require_cuda_kernel(const c10::FunctionSchema& schema,
                         const std::vector<c10::ScalarType>& types) {
  constexpr std::string_view kNamespace = "aten::";
  if (!schema.name().starts_with(kNamespace)) return;
  const std::string op = schema.name().substr(kNamespace.size());
  static std::mutex mutex;
  static auto* found = new std::map<std::string, bool>;  // never destroyed
  const std::lock_guard lock(mutex);
  const auto known = found->try_emplace(op);
  if (known.second) known.first->second = has_kernel(op);
  TORCH_CHECK(known.first->second, schema.name(), " has no CUDA kernel");
  require_kernel_for(op, types);
}

}  // namespace convoy::simulated
