// SPDX-License-Identifier: Apache-2.0
//
// Messages are Event, Summary, SummaryMetadata, TensorProto, SessionLog (TensorFlow) and Layout
// (TensorBoard's custom scalars); field numbers stand beside each use.
#include "convoy/core/telemetry/logs/tensorboard.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <system_error>

#include "convoy/core/base/hash.h"
#include "convoy/core/base/protobuf_fields.h"
#include "convoy/core/base/wall_clock.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;

// SummaryMetadata{plugin_data=1{plugin_name=1, content=2}, data_class=4}.
std::string plugin_metadata(std::string_view plugin, int64_t data_class,
                            std::string_view content = {}) {
  std::string plugin_data;
  put_bytes(plugin_data, 1, plugin);
  if (!content.empty()) put_bytes(plugin_data, 2, content);
  std::string metadata;
  put_bytes(metadata, 1, plugin_data);
  put_integer(metadata, 4, data_class);
  return metadata;
}

constexpr int64_t kScalarClass = 1;
constexpr int64_t kTensorClass = 2;

// Event.summary=5{value=1{tag=1, metadata=9, tensor=8{dtype=1 DT_STRING, shape=2{dim=2{size=1}},
// string_val=8}}}.
std::string string_summary(std::string_view tag, std::string_view plugin, std::string_view text) {
  std::string dimension;
  put_integer(dimension, 1, 1);
  std::string shape;
  put_bytes(shape, 2, dimension);
  std::string tensor;
  put_integer(tensor, 1, 7);
  put_bytes(tensor, 2, shape);
  put_bytes(tensor, 8, text);
  std::string value;
  put_bytes(value, 1, tag);
  put_bytes(value, 8, tensor);
  put_bytes(value, 9, plugin_metadata(plugin, kTensorClass));
  std::string summary;
  put_bytes(summary, 1, value);
  std::string fields;
  put_bytes(fields, 5, summary);
  return fields;
}

// Readers take the files of a folder in the order of their names and never return to an earlier
// file.
int64_t next_file_seconds(const fs::path& folder) {
  constexpr std::string_view kPrefix = "events.out.tfevents.";
  int64_t seconds = static_cast<int64_t>(wall_clock_seconds());
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix))
      seconds =
          std::max<int64_t>(seconds, std::strtoll(name.c_str() + kPrefix.size(), nullptr, 10) + 1);
  }
  return seconds;
}

fs::path new_event_file(const fs::path& folder) {
  static std::atomic<int> counter{0};
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", next_file_seconds(folder),
                              host_name(), ::getpid(), counter++);
}

}  // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8u;
}

std::string event_record(std::string_view payload) {
  std::string record;
  put_fixed64(record, payload.size());
  put_fixed32(record, masked_crc32c(record));
  record.append(payload);
  put_fixed32(record, masked_crc32c(payload));
  return record;
}

EventWriter::EventWriter(const fs::path& folder, const Log& log, int64_t first_step)
    : file_(std::make_unique<AppendFile>(new_event_file(folder), log)) {
  std::string version;
  put_bytes(version, 3, "brain.Event:2");
  write_event(0, -1, version);
  // Readers drop earlier values at every session start except the first that they see, so the first
  // file has a session start too.
  std::string session_start;  // Event.session_log=7{status=1 START}
  put_integer(session_start, 1, 1);
  std::string fields;
  put_bytes(fields, 7, session_start);
  write_event(first_step, -1, fields);
}

void EventWriter::write_event(int64_t step, double wall_time, std::string_view fields) {
  std::string event;
  put_double(event, 1, wall_time < 0 ? wall_clock_seconds() : wall_time);
  if (step != 0) put_integer(event, 2, step);
  event.append(fields);
  file_->append(event_record(event));
}

void EventWriter::add_scalar(const std::string& tag, int64_t step, double number,
                             double wall_time) {
  std::string value;
  put_bytes(value, 1, tag);
  put_float(value, 2, static_cast<float>(number));
  if (described_tags_.insert(tag).second)
    put_bytes(value, 9, plugin_metadata("scalars", kScalarClass));
  std::string summary;
  put_bytes(summary, 1, value);
  std::string fields;
  put_bytes(fields, 5, summary);
  write_event(step, wall_time, fields);
}

void EventWriter::add_text(const std::string& tag, std::string_view markdown, int64_t step,
                           double wall_time) {
  write_event(step, wall_time, string_summary(tag, "text", markdown));
}

// Event.summary=5{value=1{tag=1, metadata=9, tensor=8{dtype=1 DT_FLOAT, shape=2{dim=2{size=1:
// 0}}}}}: the plugin reads the metadata; readers drop a value without a tensor.
void EventWriter::add_plugin_data(const std::string& tag, std::string_view plugin,
                                  std::string_view content, double wall_time) {
  std::string shape;
  put_bytes(shape, 2, {});
  std::string tensor;
  put_integer(tensor, 1, 1);
  put_bytes(tensor, 2, shape);
  std::string value;
  put_bytes(value, 1, tag);
  put_bytes(value, 8, tensor);
  put_bytes(value, 9, plugin_metadata(plugin, kTensorClass, content));
  std::string summary;
  put_bytes(summary, 1, value);
  std::string fields;
  put_bytes(fields, 5, summary);
  write_event(0, wall_time, fields);
}

void EventWriter::add_layout(const std::string& category, const std::vector<ScalarChart>& charts) {
  std::string category_message;  // Category{title=1, chart=2{title=1, multiline=2{tag=1}}}
  put_bytes(category_message, 1, category);
  for (const ScalarChart& chart : charts) {
    std::string multiline;
    for (const std::string& pattern : chart.tag_patterns) put_bytes(multiline, 1, pattern);
    std::string chart_message;
    put_bytes(chart_message, 1, chart.title);
    put_bytes(chart_message, 2, multiline);
    put_bytes(category_message, 2, chart_message);
  }
  std::string layout;
  put_bytes(layout, 2, category_message);
  write_event(0, -1, string_summary("custom_scalars__config__", "custom_scalars", layout));
}

}  // namespace convoy::telemetry
