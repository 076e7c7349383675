// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/parallel/same_parameters.h"

#include <fmt/ranges.h>

#include <sstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/machine/device/dtype.h"

namespace convoy::parallel {
namespace {

// One line per parameter.
std::string description(const std::vector<nn::NamedTensor>& parameters) {
  std::string text;
  for (const nn::NamedTensor& parameter : parameters)
    text += fmt::format("{} [{}] {}\n", parameter.name, fmt::join(parameter.value.sizes(), ", "),
                        device::dtype_name(parameter.value.scalar_type()));
  return text;
}

// The first line that differs, from `left` and from `right`; "nothing" past the end of a text.
std::pair<std::string, std::string> first_difference(const std::string& left,
                                                     const std::string& right) {
  std::istringstream left_lines(left), right_lines(right);
  std::string left_line, right_line;
  while (true) {
    if (!std::getline(left_lines, left_line)) left_line = "nothing";
    if (!std::getline(right_lines, right_line)) right_line = "nothing";
    if (left_line != right_line || !left_lines || !right_lines) return {left_line, right_line};
  }
}

}  // namespace

void check_same_parameters(comm::Group& group, const std::vector<nn::NamedTensor>& parameters) {
  const std::string mine = description(parameters);
  const std::vector<std::string> hashes = group.all_gather_bytes(sha256_hex(mine));
  const auto odd = std::find_if(hashes.begin(), hashes.end(),
                                [&](const std::string& hash) { return hash != hashes[0]; });
  if (odd == hashes.end()) return;
  const size_t odd_rank = static_cast<size_t>(odd - hashes.begin());
  const std::vector<std::string> descriptions = group.all_gather_bytes(mine);
  const auto [first, other] = first_difference(descriptions[0], descriptions[odd_rank]);
  throw ConfigError(
      fmt::format("all ranks must hold the same model: rank 0 has `{}` where rank {} has `{}`",
                  first, odd_rank, other),
      {.hint = "start every rank with the same config and model", .rank = group.rank()});
}

void broadcast_values(comm::Group& group, const std::vector<nn::NamedTensor>& parameters) {
  const at::NoGradGuard no_grad;
  for (const nn::NamedTensor& parameter : parameters) {
    at::Tensor value = parameter.value.contiguous();
    group.broadcast(value, 0);
    if (value.is_same(parameter.value))
      // A group writes without counting a version, so the version is counted here.
      value.unsafeGetTensorImpl()->bump_version();
    else
      parameter.value.copy_(value);
  }
}

}  // namespace convoy::parallel
