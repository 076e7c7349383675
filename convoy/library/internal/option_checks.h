// SPDX-License-Identifier: Apache-2.0
//
// Checks that DistributedDataParallelOptions and FullyShardedOptions share. `options_name`: the
// name of the struct, for errors.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>
#include <string_view>

#include "convoy/library/process_group.h"
#include "convoy/model/nn/named_tensor.h"

namespace convoy::detail {

// Collective. `words`: the options of this rank. Throws ConfigError when another rank has other
// options.
void require_same_options(std::string_view options_name, const std::string& words,
                          ProcessGroup& group);

// The name of the type; "as it is" without a type.
std::string gradient_dtype_text(std::optional<at::ScalarType> dtype);

// Throws ConfigError for a type in which gradients cannot be sent.
void require_gradient_dtype(std::string_view options_name, std::optional<at::ScalarType> dtype);

// Throws ConfigError for a complex parameter, whose gradient has no gradient_dtype to be sent in.
void require_real(std::string_view options_name, const nn::NamedTensor& parameter);

}  // namespace convoy::detail
