// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/rank_files.h"

#include <fmt/format.h>

#include "convoy/launch/logs/drawn_line.h"

namespace convoy::launch {
namespace {

// An unfinished line of this length is stored before it ends, so that memory stays bounded.
constexpr size_t kLongestUnfinishedBytes = 64 << 10;

const std::filesystem::path kNoFile;

}  // namespace

std::filesystem::path attempt_folder(const LogOptions& options) {
  return options.layout == LogLayout::Torchrun
             ? options.folder / fmt::format("attempt_{}", options.attempt)
             : options.folder;
}

RankFiles::RankFiles(const LogOptions& options, int local_rank) : layout_(options.layout) {
  if (layout_ == LogLayout::Convoy) {
    const int rank = options.first_global_rank + local_rank;
    files_[0] = LogFile(options.folder / fmt::format("rank-{:02d}.log", rank), FileStart::Append,
                        options.file_retry_wait);
  }
  if (layout_ != LogLayout::Torchrun) return;
  const std::filesystem::path folder = attempt_folder(options) / std::to_string(local_rank);
  // Error files are stored in this folder too, even without log files. A failure to make it is
  // reported when a file in it is opened.
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  for (const Stream stream : {Stream::Output, Stream::Errors}) {
    if (!options.file_for_every_stream && !options.redirects.contains(local_rank, stream) &&
        !options.tee.contains(local_rank, stream))
      continue;
    const char* const name = stream == Stream::Output ? "stdout.log" : "stderr.log";
    files_[static_cast<size_t>(stream)] =
        LogFile(folder / name, FileStart::Anew, options.file_retry_wait);
  }
}

bool RankFiles::take(Stream stream, std::string_view bytes) {
  return layout_ == LogLayout::Convoy ? take_lines(stream, bytes)
                                      : files_[static_cast<size_t>(stream)].write(bytes);
}

bool RankFiles::stores(Stream stream) const {
  const LogFile& file = files_[layout_ == LogLayout::Convoy ? 0 : static_cast<size_t>(stream)];
  return file.wanted() && file.failure() == 0;
}

void RankFiles::finish() {
  for (std::string& unfinished : unfinished_) {
    if (!unfinished.empty()) files_[0].write(last_drawn(unfinished), "\n");
    unfinished.clear();
  }
}

void RankFiles::note(std::string_view line) {
  if (layout_ == LogLayout::Convoy) files_[0].write(line, "\n");
}

const LogFile* RankFiles::failed() const {
  for (const LogFile& file : files_)
    if (file.failure() != 0) return &file;
  return nullptr;
}

const std::filesystem::path& RankFiles::to_read() const {
  const LogFile& output = files_[0];
  const LogFile& errors = files_[1];
  if (errors.exists() && (errors.stored_bytes() > 0 || !output.exists())) return errors.path();
  return output.exists() ? output.path() : kNoFile;
}

bool RankFiles::take_lines(Stream stream, std::string_view bytes) {
  std::string& unfinished = unfinished_[static_cast<size_t>(stream)];
  const size_t last_end = bytes.rfind('\n');
  bool stored = true;
  if (last_end != std::string_view::npos) {
    const std::string_view lines = bytes.substr(0, last_end + 1);
    const bool redrawn =
        unfinished.find('\r') != std::string::npos || lines.find('\r') != std::string_view::npos;
    stored = redrawn ? take_drawn(unfinished, lines) : files_[0].write(unfinished, lines);
    unfinished.clear();
    bytes.remove_prefix(last_end + 1);
  }
  unfinished += bytes;
  if (unfinished.size() < kLongestUnfinishedBytes) return stored;
  // Text that a redraw has overwritten is dropped. A line that is merely long is stored in pieces.
  const std::string_view drawn = last_drawn(unfinished);
  if (drawn.size() < kLongestUnfinishedBytes / 2) {
    unfinished = fmt::format("{}{}", drawn, unfinished.ends_with('\r') ? "\r" : "");
    return stored;
  }
  stored = files_[0].write(drawn) && stored;
  unfinished.clear();
  return stored;
}

bool RankFiles::take_drawn(const std::string& unfinished, std::string_view lines) {
  const std::string all = unfinished + std::string(lines);
  std::string drawn;
  for (std::string_view rest = all; !rest.empty();) {
    const size_t end = rest.find('\n');
    drawn += last_drawn(rest.substr(0, end));
    drawn += '\n';
    rest.remove_prefix(end + 1);
  }
  return files_[0].write(drawn);
}

}  // namespace convoy::launch
