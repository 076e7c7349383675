// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/sweep_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <system_error>

#include "convoy/core/base/error.h"
#include "convoy/core/base/time_text.h"

namespace convoy::sweep {
namespace {

constexpr std::array<const char*, 4> kSeverityWords = {"DEBUG", "INFO", "WARNING", "ERROR"};

// The local time, such as "2026-11-26 19:29:27.123".
std::string time_of_line() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{}.{:03}", local_time_text(seconds), millis);
}

std::filesystem::path numbered(const std::filesystem::path& path, int number) {
  return number == 0 ? path : std::filesystem::path(fmt::format("{}.{}", path.string(), number));
}

}  // namespace

Severity severity_of(const std::string& word, const std::string& key) {
  std::string upper = word;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char letter) { return std::toupper(letter); });
  const auto* const found = std::find(kSeverityWords.begin(), kSeverityWords.end(), upper);
  if (found == kSeverityWords.end())
    throw ConfigError(
        fmt::format("{}: wanted debug, info, warning or error, found `{}`", key, word),
        {.key = key, .hint = "such as info"});
  return static_cast<Severity>(found - kSeverityWords.begin());
}

SweepLog::SweepLog(const std::filesystem::path& folder, Severity least, int64_t file_bytes)
    : path_(folder.empty() ? folder : folder / "sweep.log"),
      least_(least),
      file_bytes_(file_bytes) {
  if (path_.empty()) return;
  open();
  if (!file_.open())
    throw IoError(fmt::format("the log cannot be opened: {}", std::strerror(errno)),
                  {.file = path_.string(), .hint = "name another folder with --log-dir"});
}

void SweepLog::open() {
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
}

// Another runner may have renamed the file already. Then only this runner still writes to the old
// file.
void SweepLog::rotate() {
  struct stat mine {
  }, named{};
  const bool is_current = ::fstat(file_.get(), &mine) == 0 && ::stat(path_.c_str(), &named) == 0 &&
                          mine.st_ino == named.st_ino;
  std::error_code ignored;
  for (int number = kFiles - 1; is_current && number > 0; --number)
    std::filesystem::rename(numbered(path_, number - 1), numbered(path_, number), ignored);
  open();
}

void SweepLog::write(Severity severity, std::string_view author, std::string_view text) {
  if (!shows(severity)) return;
  std::string line = fmt::format("{} {:<7} {:<9} {}", time_of_line(),
                                 kSeverityWords[static_cast<size_t>(severity)], author, text);
  std::replace_if(
      line.begin(), line.end(), [](char letter) { return letter == '\n' || letter == '\r'; }, ' ');
  line += '\n';
  // One write() per line, so that lines of several runners stay whole.
  [[maybe_unused]] const ssize_t written = ::write(file_.get(), line.data(), line.size());
  struct stat facts {};
  if (::fstat(file_.get(), &facts) == 0 && facts.st_size >= file_bytes_) rotate();
}

}  // namespace convoy::sweep
