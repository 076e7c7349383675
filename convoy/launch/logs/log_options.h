// SPDX-License-Identifier: Apache-2.0
//
// The treatment of the output of one host's ranks: streams that go to files, streams that go to the
// console, and the form of a console line. Values of torchrun's flags are parsed here.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::launch {

enum class Stream { Output, Errors };

enum class Console {
  Prefixed,  // whole lines, each led by its rank
  // As Prefixed, but global rank 0's output is passed on as it comes: it may draw a progress bar.
  RankZeroPlain,
  Silent,  // files only
};

// The prefix of a console line. With `timestamps`, "HH:MM:SS.mmm " follows, in local time.
enum class LinePrefix {
  Rank,      // "[rank 3] ", folded "[ranks 0-3,7] "
  HostRank,  // "[host 3] ", folded "[host 0-3,7] "
};

enum class LogLayout {
  None,      // no files
  Convoy,    // FOLDER/rank-03.log: both streams by whole lines, global rank, appended to
  Torchrun,  // FOLDER/attempt_N/LOCAL_RANK/{stdout.log,stderr.log}: bytes as written, truncated
};

// A choice of streams of local ranks, in the syntax of torchrun's --redirects and --tee.
class StreamSelection {
 public:
  StreamSelection() = default;  // selects no stream

  // "0" none, "1" stdout, "2" stderr, "3" both, for every rank; or "0:3,12:1", where ranks that
  // are not named have none. Throws ConfigError that names `flag`.
  static StreamSelection parse(std::string_view text, std::string_view flag);

  bool contains(int local_rank, Stream stream) const;
  bool empty() const;  // nothing selected
  std::vector<int> named_ranks() const;

 private:
  int every_rank_ = 0;
  std::map<int, int> by_rank_;
};

// --local-ranks-filter "0,1,2". Empty text = no filter. Throws ConfigError.
std::vector<int> parse_local_ranks_filter(std::string_view text);

// --duplicate-stdout-filters "apple,a,,b": the strings `apple` and `a,b`. Empty text = none.
// Throws ConfigError for an empty string among others: it would match every line.
std::vector<std::string> parse_line_filters(std::string_view text, std::string_view flag);

// Returns one sentence for each option (redirects, tee, local ranks filter) that names a local rank
// that does not exist, `num_local_ranks` or above.
struct LogOptions;
std::vector<std::string> absent_local_ranks(const LogOptions& options, int num_local_ranks);

struct LogOptions {
  Console console = Console::Prefixed;
  LinePrefix prefix = LinePrefix::Rank;
  bool timestamps = false;
  // TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE: replaces the prefix; ${role_name}, ${rank} and
  // ${local_rank} are filled in. Lines are not folded then, since each rank has another prefix.
  std::string prefix_template;
  std::string host;              // for LinePrefix::HostRank
  std::string role = "default";  // for the template
  int num_local_ranks = 1;
  int first_global_rank = 0;  // global number of local rank 0; the others follow

  LogLayout layout = LogLayout::None;
  std::filesystem::path folder;
  int attempt = 0;  // Torchrun layout
  // Torchrun layout: false = only streams that `redirects` or `tee` select have files, as torchrun.
  bool file_for_every_stream = true;

  StreamSelection redirects;  // to the file only, not to the console
  StreamSelection tee;        // to the file and the console, even if `redirects` selects it too
  std::vector<int> shown_local_ranks;  // on the console and in the filter files; empty = all
  // Lines shown on the console that contain one of the strings are copied to
  // FOLDER[/attempt_N]/filtered_stdout.log, filtered_stderr.log.
  std::vector<std::string> output_filters;
  std::vector<std::string> errors_filters;

  bool fold = true;  // identical lines of several ranks become one on the console
  std::chrono::milliseconds fold_window{100};
  // The interval at which the text of an unfinished line that is redrawn with '\r' is shown.
  std::chrono::milliseconds redraw_interval{5'000};
  // The local rank that reads what a person types, -1 = none. Its unfinished line, such as a prompt
  // or a progress bar, is shown after `prompt_wait`, but not before `fold_window` has passed:
  // earlier lines come first. Lines of other ranks go below it.
  int prompting_local_rank = -1;
  std::chrono::milliseconds prompt_wait{120};
  // A log file that could not be written to is tried again this much later.
  std::chrono::milliseconds file_retry_wait{10'000};
  bool color = false;      // the prefix has a colour, if the console is a terminal
  int console_output = 1;  // descriptors, not owned
  int console_errors = 2;
};

}  // namespace convoy::launch
