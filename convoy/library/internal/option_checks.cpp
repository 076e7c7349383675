// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/option_checks.h"

#include <fmt/format.h>

#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/library/internal/group_internal.h"

namespace convoy::detail {

void require_same_options(std::string_view options_name, const std::string& words,
                          ProcessGroup& group) {
  const std::vector<std::string> all = ranks_of(group).all_gather_bytes(words);
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all[0])
      throw ConfigError(fmt::format("{} differ: rank 0 has {}; rank {} has {}", options_name,
                                    all[0], rank, all[rank]),
                        {.hint = "give all ranks the same options"});
}

std::string gradient_dtype_text(std::optional<at::ScalarType> dtype) {
  return dtype ? c10::toString(*dtype) : "as it is";
}

void require_gradient_dtype(std::string_view options_name, std::optional<at::ScalarType> dtype) {
  if (dtype && *dtype != at::kFloat && *dtype != at::kBFloat16)
    throw ConfigError(fmt::format("{}::gradient_dtype is kFloat or kBFloat16, found {}",
                                  options_name, c10::toString(*dtype)),
                      {.hint = "give one of these, or leave it out"});
}

void require_real(std::string_view options_name, const nn::NamedTensor& parameter) {
  if (parameter.value.is_complex())
    throw ConfigError(fmt::format("{}::gradient_dtype: {} is complex, and its gradient would lose "
                                  "its imaginary part",
                                  options_name, parameter.name),
                      {.hint = "leave gradient_dtype out"});
}

}  // namespace convoy::detail
