// SPDX-License-Identifier: Apache-2.0
//
// Follows events.jsonl while another process writes it, over restarts that rewrite the file.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace convoy::telemetry {

class EventTail {
 public:
  // Rows that are to be told: all that the file has, or those that are written from now on.
  enum class From { Beginning, Now };
  explicit EventTail(std::filesystem::path path, From from = From::Beginning);

  // Whole rows added since the last call, as they stand in the file; a row still being written
  // waits for the next call. After the file was replaced only rows later than the last one seen. A
  // missing file has no rows.
  std::vector<nlohmann::ordered_json> new_rows();

 private:
  std::filesystem::path path_;
  ino_t inode_ = 0;
  int64_t offset_bytes_ = 0;
  double last_seconds_ = 0;
};

// One row for a person: "step 12  loss 1.2345  ...".
std::string event_text(const nlohmann::ordered_json& row);

}  // namespace convoy::telemetry
