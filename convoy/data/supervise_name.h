// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "convoy/data/encode_sample.h"

namespace convoy::data {

// "auto", "assistant", "last", "all". Throws ConfigError.
Supervise supervise_named(const std::string& name);

}  // namespace convoy::data
