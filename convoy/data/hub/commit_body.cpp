// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/commit_body.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace convoy::hub {
namespace {

constexpr std::string_view kFileEnd = "\"}}\n";

int64_t base64_bytes(int64_t bytes) { return (bytes + 2) / 3 * 4; }

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t three = 0;
    const size_t taken = std::min<size_t>(3, bytes.size() - at);
    for (size_t index = 0; index < 3; ++index)
      three = three << 8 | (index < taken ? static_cast<uint8_t>(bytes[at + index]) : 0u);
    for (size_t index = 0; index < 4; ++index)
      text += index <= taken ? kDigits[three >> (18 - 6 * index) & 63] : '=';
  }
  return text;
}

CommitBody::CommitBody(const std::string& summary, const std::string& description) {
  const nlohmann::ordered_json header = {
      {"key", "header"}, {"value", {{"summary", summary}, {"description", description}}}};
  add(header.dump() + "\n", nullptr);
}

void CommitBody::add(std::string head, const PushFile* file) {
  const auto head_bytes = static_cast<int64_t>(head.size());
  lines_.push_back({.begin = size_bytes_, .head = std::move(head), .file = file});
  size_bytes_ += head_bytes;
  if (file != nullptr)
    size_bytes_ += base64_bytes(file->size_bytes) + static_cast<int64_t>(kFileEnd.size());
}

void CommitBody::add_file(const PushFile& file) {
  add(R"({"key":"file","value":{"encoding":"base64","path":)" + nlohmann::json(file.path).dump() +
          R"(,"content":")",
      &file);
}

void CommitBody::add_large_file(const PushFile& file, const std::string& sha256) {
  const nlohmann::ordered_json line = {
      {"key", "lfsFile"},
      {"value",
       {{"path", file.path}, {"algo", "sha256"}, {"oid", sha256}, {"size", file.size_bytes}}}};
  add(line.dump() + "\n", nullptr);
}

std::string CommitBody::line_text(const Line& line) const {
  if (line.file == nullptr) return line.head;
  return line.head + base64(PushBytes(*line.file).read(0, line.file->size_bytes)) +
         std::string(kFileEnd);
}

size_t CommitBody::read(int64_t begin, char* into, size_t most) {
  const auto after =
      std::upper_bound(lines_.begin(), lines_.end(), begin,
                       [](int64_t offset, const Line& line) { return offset < line.begin; });
  const auto index = static_cast<size_t>(after - lines_.begin()) - 1;
  if (index != made_line_) {
    made_text_ = line_text(lines_[index]);
    made_line_ = index;
  }
  const auto skipped = static_cast<size_t>(begin - lines_[index].begin);
  const size_t given = std::min(most, made_text_.size() - skipped);
  std::memcpy(into, made_text_.data() + skipped, given);
  return given;
}

}  // namespace convoy::hub
