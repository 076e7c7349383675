// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/task.h"

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/json_depth.h"

namespace convoy::jobs {

std::array<uint8_t, 32> task_id_bytes(std::string_view workload, std::string_view version,
                                      std::string_view parameters, int64_t units) {
  // Lengths keep ("ab", "c") apart from ("a", "bc").
  std::string bytes = "convoy.task.1";
  for (const std::string_view text : {workload, version, parameters}) {
    bytes += '\n';
    bytes += std::to_string(text.size());
    bytes += ':';
    bytes += text;
  }
  bytes += '\n';
  bytes += std::to_string(units);
  Sha256 hash;
  hash.update(bytes);
  return hash.digest();
}

std::string task_id(std::string_view workload, std::string_view version,
                    std::string_view parameters, int64_t units) {
  const std::array<uint8_t, 32> bytes = task_id_bytes(workload, version, parameters, units);
  return hex_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string canonical_parameters(std::string_view json) {
  const nlohmann::json parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object() || nested_deeper(json))
    throw ConfigError(
        fmt::format("task parameters: wanted a JSON object, found '{}'", json.substr(0, 200)),
        {.hint = "write one object of names and values: {\"lr\": 0.1}"});
  return parsed.dump();
}

}  // namespace convoy::jobs
