// SPDX-License-Identifier: Apache-2.0
#include "convoy/jobs/task.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"

namespace convoy::jobs {

std::string task_id(std::string_view workload, std::string_view version,
                    std::string_view parameters, int64_t units) {
  // Lengths keep ("ab", "c") apart from ("a", "bc").
  return sha256_hex(fmt::format("convoy.task.1\n{}:{}{}:{}{}:{}{}", workload.size(), workload,
                                version.size(), version, parameters.size(), parameters, units));
}

std::string canonical_parameters(std::string_view json) {
  const nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  CONVOY_CHECK(parsed.is_object(), ConfigError, "task parameters: wanted a JSON object, found '{}'",
               json.substr(0, 200));
  return parsed.dump();
}

}  // namespace convoy::jobs
