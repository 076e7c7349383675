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
  // Which rows to return: all in the file, or only those written from now on.
  enum class From { Beginning, Now };
  explicit EventTail(std::filesystem::path path, From from = From::Beginning);

  // Returns the whole rows added since the last call, unchanged; a row that is still being written
  // waits for the next call. After the file was replaced, returns only rows later than the last one
  // returned. A missing file has no rows.
  std::vector<nlohmann::ordered_json> new_rows();

 private:
  std::filesystem::path path_;
  ino_t inode_ = 0;
  int64_t offset_bytes_ = 0;
  double last_seconds_ = 0;
};

// One row as text for people: "step 12 loss 1.2345 ...".
std::string event_text(const nlohmann::ordered_json& row);

}  // namespace convoy::telemetry
