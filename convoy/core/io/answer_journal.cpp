// SPDX-License-Identifier: Apache-2.0
//
// A file begins with the key line. A line is "prompt sample checksum text"; reading ends at the
// first torn or wrong line. Each process writes a file of its own, so no line is ever appended
// behind a torn one.
#include "convoy/core/io/answer_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

struct Line {
  AnswerJournal::Place place;
  std::string_view text;
};

std::optional<Line> parsed(std::string_view line) {
  Line result;
  uint32_t checksum = 0;
  const auto number = [&line](auto& value, int base) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, base);
    if (error != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
    line.remove_prefix(static_cast<size_t>(end - line.data()) + 1);
    return true;
  };
  if (!number(result.place.first, 10) || !number(result.place.second, 10) || !number(checksum, 16))
    return {};
  if (crc32c(line) != checksum) return {};
  result.text = line;
  return result;
}

}  // namespace

bool AnswerJournal::is_kept_beside(const std::string& output) {
  return !output.empty() && (!fs::exists(output) || fs::is_regular_file(output));
}

AnswerJournal::AnswerJournal(const std::string& output, const std::string& key, int rank,
                             const Log& log)
    : folder_(output + ".partial"), key_(key), rank_(rank) {
  if (fs::exists(folder_))
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
      read(entry.path(), key);
  if (!kept_.empty())
    log.info(fmt::format("{} finished answers are taken from {}", kept_.size(), folder_.string()));
  open_file();
}

void AnswerJournal::open_file() {
  std::error_code error;
  fs::create_directories(folder_, error);
  for (int64_t life = 0; descriptor_ < 0; ++life) {
    const fs::path file = folder_ / fmt::format("rank-{}-{}", rank_, life);
    descriptor_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST)
      throw IoError(fmt::format("{} cannot be written: {}", file.string(), std::strerror(errno)),
                    {.hint = "free space there, allow writing, or name another output folder"});
  }
  write(key_ + "\n");
}

void AnswerJournal::forget_own() {
  ::close(std::exchange(descriptor_, -1));
  const std::string begin = fmt::format("rank-{}-", rank_);
  std::vector<fs::path> own;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
    if (entry.path().filename().string().starts_with(begin)) own.push_back(entry.path());
  for (const fs::path& file : own) fs::remove(file);
  open_file();
}

AnswerJournal::~AnswerJournal() { ::close(descriptor_); }

void AnswerJournal::read(const fs::path& file, const std::string& key) {
  std::ifstream stream(file, std::ios::binary);
  std::string line;
  if (!std::getline(stream, line) || stream.eof())
    return;  // the process of this file ended before it wrote a line
  if (line != key)
    throw ConfigError(
        "the finished answers saved here belong to other prompts, weights or settings",
        {.file = folder_.string(), .hint = "give the same again to resume, or remove the folder"});
  while (std::getline(stream, line) && !stream.eof()) {
    const std::optional<Line> kept = parsed(line);
    if (!kept) return;
    kept_.try_emplace(kept->place, kept->text);
  }
}

void AnswerJournal::write(const std::string& line) {
  std::string_view left = line;
  while (!left.empty()) {
    const ssize_t written = ::write(descriptor_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw IoError(
          fmt::format("{} cannot be written: {}", folder_.string(), std::strerror(errno)),
          {.hint = "free space there, and run the same command again: finished answers are kept"});
    left.remove_prefix(static_cast<size_t>(written));
  }
}

void AnswerJournal::add(const Place& place, const std::string& line) {
  write(fmt::format("{} {} {:08x} {}\n", place.first, place.second, crc32c(line), line));
}

void AnswerJournal::remove() { fs::remove_all(folder_); }

}  // namespace convoy::io
