// SPDX-License-Identifier: Apache-2.0
//
// All streams of all local ranks of one attempt: into files, onto the console by whole lines, and
// into a memory of the last lines for the report. Driven by the launcher's poll loop, one thread;
// never blocks on the console. A log disk or a console that fails costs one warning, never the job.
// SIGPIPE and SIGXFSZ must be blocked or ignored.
#pragma once

#include <array>
#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "convoy/launch/logs/console_queue.h"
#include "convoy/launch/logs/drawn_line.h"
#include "convoy/launch/logs/last_lines.h"
#include "convoy/launch/logs/line_fold.h"
#include "convoy/launch/logs/line_prefix.h"
#include "convoy/launch/logs/log_file.h"
#include "convoy/launch/logs/log_options.h"
#include "convoy/launch/logs/rank_files.h"

namespace convoy::launch {

class LogRouter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMostHurriedBytes = 16 << 20;

  // Makes the files. A file that cannot be made causes a warning and no exception.
  explicit LogRouter(const LogOptions& options);
  // The same as close(-1, 1 s).
  ~LogRouter();
  LogRouter(const LogRouter&) = delete;
  LogRouter& operator=(const LogRouter&) = delete;

  // Takes bytes as the rank wrote them, cut anywhere. Blocks on the disk only.
  void take(int local_rank, Stream stream, std::string_view bytes);
  // Returns false while the console is behind. Call it before every read from a stream and do not
  // read on false: the rank then waits in its write, and memory stays bounded. take() still works.
  bool accepts(int local_rank, Stream stream) const;
  // Call it when ranks are about to end, so that the console does not hold them up: accepts() is
  // true from now on. Output is dropped while a console has more than kMostHurriedBytes to take; a
  // line then tells the number of dropped bytes.
  void hurry() { hurried_ = true; }
  // Call it at the end of both streams of a rank. Completes unfinished lines.
  void finish(int local_rank);
  // Writes a line that the rank did not write itself to the rank's file of the Convoy layout only.
  void note(int local_rank, std::string_view line);

  // Ends lines that are shown in part. Call it before other code writes to the console, so that its
  // text begins a line.
  void end_open_lines();

  // The time at which the poll loop calls handle_deadline() even if nothing was read. Nothing =
  // none.
  std::optional<Clock::time_point> next_deadline() const;
  // Descriptors that the poll loop polls for POLLOUT; a ready one needs handle_deadline(). -1 =
  // none.
  std::array<int, 2> waiting_consoles() const;
  // Writes what is due and what the console did not take before. Call it after every poll; it is
  // cheap.
  void handle_deadline();

  // Blocks until all accepted output is on the console, until `interrupt` (a descriptor, -1 = none)
  // is readable, or until the console has taken nothing for `patience` (absent = no limit). Call it
  // before a report is written to the console.
  void close(int interrupt = -1, std::optional<std::chrono::milliseconds> patience = std::nullopt);

  // Up to 20 last lines of both streams, unfinished lines included.
  std::string last_lines(int local_rank) const { return rank(local_rank).last.text(); }
  // The file that a person should read about this rank; empty = there is none.
  const std::filesystem::path& file(int local_rank) const {
    return rank(local_rank).files.to_read();
  }

 private:
  using WallClock = std::chrono::system_clock;

  struct StreamState {
    bool shown = true;        // on the console
    bool plain = false;       // on the console as raw bytes, not as lines
    bool redirected = false;  // to the file, and to the console only while the file fails
    bool file_only = false;   // redirected, and the file works
    bool prompts = false;     // shown, and an unfinished line is drawn as it stands
    bool copied = false;      // lines that match a filter go to the filter file
    DrawnLines lines;
    Clock::time_point line_began;      // when the unfinished line began, if it prompts
    std::optional<std::string> drawn;  // the part of the unfinished line on the console
    bool redraw_due = false;           // redraws_ has an entry for it
  };
  struct RankState {
    explicit RankState(RankFiles made) : files(std::move(made)) {}
    RankFiles files;
    LastLines last;
    StreamState streams[2];
    bool open = true;
  };
  struct Redraw {
    Clock::time_point due;
    int local_rank;
    Stream stream;
  };

  RankState& rank(int local_rank) { return ranks_[static_cast<size_t>(local_rank)]; }
  const RankState& rank(int local_rank) const { return ranks_[static_cast<size_t>(local_rank)]; }
  StreamState& state(int local_rank, Stream stream) {
    return rank(local_rank).streams[static_cast<size_t>(stream)];
  }
  size_t console_index(Stream stream) const {
    return one_console_ ? 0 : static_cast<size_t>(stream);
  }
  ConsoleQueue& console(Stream stream) { return consoles_[console_index(stream)]; }

  void open_filter_file(Stream stream);
  void set_up_stream(int local_rank, Stream stream);
  void look_at_clocks();
  void redirect(int local_rank, Stream stream, bool file_only);
  void take_lines(int local_rank, Stream stream, std::string_view bytes, bool shown);
  void line(int local_rank, Stream stream, std::string_view text, bool shown);
  void queue(int local_rank, Stream stream, std::string_view text);
  void show(Stream stream, std::string_view text, std::span<const int> local_ranks,
            WallClock::time_point time);
  void watch_unfinished(int local_rank, Stream stream);
  void redraw_at(Clock::time_point due, int local_rank, Stream stream);
  void draw_if_old(int local_rank, Stream stream);
  void draw(int local_rank, Stream stream, std::string_view text);
  void pass_on(Stream stream, std::string_view bytes);
  void end_open_line(Stream stream);
  bool has_room(Stream stream, size_t size_bytes);
  void show_folded();
  void show_redraws();
  void copy_if_matching(int local_rank, Stream stream, std::string_view text);
  void set_writer(int local_rank, Stream stream);
  void flush();
  void warn(std::string_view text);
  void warn_of(const LogFile& file);

  const LogOptions options_;
  const bool fold_lines_;
  const bool one_console_;  // both streams go to the same terminal, pipe or file
  ConsoleQueue consoles_[2];
  LinePrefixes prefixes_;
  LineFold fold_;
  std::deque<RankState> ranks_;
  LogFile filtered_[2];
  std::deque<Redraw> redraws_;  // in the order of their due times
  Clock::time_point now_;
  WallClock::time_point time_;
  char last_byte_[2] = {'\n', '\n'};  // by console: '\n' unless a line is unfinished there
  // by console: the stream whose unfinished line is the last one there
  const StreamState* drawing_[2] = {};
  bool hurried_ = false;
  size_t not_shown_bytes_[2] = {};  // by console
  bool warned_of_file_ = false;
  bool warned_of_console_[2] = {};
};

}  // namespace convoy::launch
