// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rank_log.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "convoy/base/error.h"
#include "convoy/base/log.h"

namespace convoy::launch {
namespace {

constexpr size_t kLongestLineBytes = 64 << 10;  // longer ones are cut, so that memory stays bounded
constexpr size_t kLastLines = 20;

// False when the other end is gone or the disk is full.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

int console_of(Stream stream) { return stream == Stream::Output ? STDOUT_FILENO : STDERR_FILENO; }

// A progress bar redraws its line: what stood there last is what a file should keep.
std::string_view last_drawn(std::string_view text) {
  while (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  const size_t redraw = text.rfind('\r');
  return redraw == std::string_view::npos ? text : text.substr(redraw + 1);
}

}  // namespace

RankLog::RankLog(int rank, Console console, const std::filesystem::path& file)
    : rank_(rank),
      console_(console),
      plain_(console == Console::RankZeroPlain && rank == 0),
      file_path_(file) {
  if (file.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  file_ = Descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_.open())
    throw IoError(fmt::format("the log file could not be made: {}", std::strerror(errno)),
                  {.file = file});
}

void RankLog::take(Stream stream, std::string_view bytes) {
  if (plain_) write_all(console_of(stream), bytes);
  std::string& pending = unfinished_[static_cast<size_t>(stream)];
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    pending += bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (end == std::string_view::npos && pending.size() < kLongestLineBytes) break;
    line(stream, pending);
    pending.clear();
  }
}

void RankLog::finish() {
  for (const Stream stream : {Stream::Output, Stream::Errors}) {
    std::string& pending = unfinished_[static_cast<size_t>(stream)];
    if (!pending.empty()) line(stream, pending);
    pending.clear();
  }
}

void RankLog::note(std::string_view line) { write_file(fmt::format("{}\n", line)); }

void RankLog::line(Stream stream, std::string_view text) {
  text = last_drawn(text);
  write_file(fmt::format("{}\n", text));
  last_.emplace_back(text);
  if (last_.size() > kLastLines) last_.pop_front();
  // One write per line keeps the lines of several ranks whole.
  if (console_ != Console::Silent && !plain_)
    write_all(console_of(stream), fmt::format("[rank {}] {}\n", rank_, text));
}

void RankLog::write_file(std::string_view text) {
  if (!file_.open() || file_failed_ || write_all(file_.get(), text)) return;
  file_failed_ = true;
  Log().warning(fmt::format("{}: {}; this log ends here, the run goes on", file_path_.string(),
                            std::strerror(errno)));
}

std::string RankLog::last_lines() const { return fmt::format("{}", fmt::join(last_, "\n")); }

}  // namespace convoy::launch
