// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard event files, written by a built-in encoder (no protobuf library). One writer per
// folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/telemetry/logs/append_file.h"

namespace convoy::telemetry {

// The checksum, rotated right by 15 bits and offset, as event files store it.
uint32_t masked_crc32c(std::string_view bytes);

// One record of an event file: length, checksum of the length, payload, checksum of the payload.
std::string event_record(std::string_view payload);

// Charts of the "Custom Scalars" page: all tags that match a regular expression, in one chart.
struct ScalarChart {
  std::string title{};
  std::vector<std::string> tag_patterns{};
};

class EventWriter {
 public:
  // Makes a new file in `folder`, whose name sorts after the existing ones. Readers drop earlier
  // files' values from `first_step` on, so a resumed run is one curve. A full disk never stops the
  // run (one warning).
  EventWriter(const std::filesystem::path& folder, const Log& log, int64_t first_step = 0);

  // `wall_time`: seconds since 1970; below 0 = now.
  void add_scalar(const std::string& tag, int64_t step, double value, double wall_time = -1);
  void add_text(const std::string& tag, std::string_view markdown, int64_t step = 0,
                double wall_time = -1);
  // Adds the metadata of a tag for a plugin.
  void add_plugin_data(const std::string& tag, std::string_view plugin, std::string_view content,
                       double wall_time = -1);
  void add_layout(const std::string& category, const std::vector<ScalarChart>& charts);

  const std::filesystem::path& path() const { return file_->path(); }

 private:
  void write_event(int64_t step, double wall_time, std::string_view fields);

  std::unique_ptr<AppendFile> file_;
  std::set<std::string> described_tags_;  // tags whose plugin was named in this file
};

}  // namespace convoy::telemetry
