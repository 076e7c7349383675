// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/log_router.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace convoy::launch {
namespace {

constexpr Stream kStreams[] = {Stream::Output, Stream::Errors};

constexpr size_t index_of(Stream stream) { return static_cast<size_t>(stream); }

// True for a rank in the list. An empty list means all ranks.
bool in_list(int local_rank, const std::vector<int>& list) {
  return list.empty() || std::find(list.begin(), list.end(), local_rank) != list.end();
}

}  // namespace

LogRouter::LogRouter(const LogOptions& options)
    : options_(options),
      fold_lines_(options.fold && options.num_local_ranks > 1 && options.prefix_template.empty()),
      one_console_(same_file(options.console_output, options.console_errors)),
      consoles_{ConsoleQueue(options.console_output), ConsoleQueue(options.console_errors)},
      prefixes_(options),
      fold_(options.fold_window, options.num_local_ranks) {
  look_at_clocks();
  for (const Stream stream : kStreams) open_filter_file(stream);
  for (int local_rank = 0; local_rank < options_.num_local_ranks; ++local_rank) {
    ranks_.emplace_back(RankFiles(options_, local_rank));
    for (const Stream stream : kStreams) set_up_stream(local_rank, stream);
    if (const LogFile* const failed = ranks_.back().files.failed()) warn_of(*failed);
  }
  flush();
}

LogRouter::~LogRouter() { close(-1, std::chrono::seconds(1)); }

void LogRouter::open_filter_file(Stream stream) {
  const bool output = stream == Stream::Output;
  if (options_.layout == LogLayout::None) return;
  if ((output ? options_.output_filters : options_.errors_filters).empty()) return;
  LogFile& file = filtered_[index_of(stream)];
  file =
      LogFile(attempt_folder(options_) / (output ? "filtered_stdout.log" : "filtered_stderr.log"),
              options_.layout == LogLayout::Convoy ? FileStart::Append : FileStart::Anew,
              options_.file_retry_wait);
  if (file.failure() != 0) warn_of(file);
}

void LogRouter::set_up_stream(int local_rank, Stream stream) {
  StreamState& set_up = state(local_rank, stream);
  set_up.shown =
      options_.console != Console::Silent && in_list(local_rank, options_.shown_local_ranks);
  set_up.plain = set_up.shown && options_.console == Console::RankZeroPlain &&
                 options_.first_global_rank + local_rank == 0;
  set_up.redirected =
      options_.redirects.contains(local_rank, stream) && !options_.tee.contains(local_rank, stream);
  set_up.file_only = set_up.redirected && rank(local_rank).files.stores(stream);
  set_up.prompts = set_up.shown && !set_up.plain && local_rank == options_.prompting_local_rank;
  set_up.copied = set_up.shown && !set_up.redirected && filtered_[index_of(stream)].wanted();
  set_writer(local_rank, stream);
}

void LogRouter::take(int local_rank, Stream stream, std::string_view bytes) {
  look_at_clocks();
  RankState& from = rank(local_rank);
  StreamState& of_stream = state(local_rank, stream);
  from.last.add(stream, bytes);
  const bool stored = from.files.take(stream, bytes);
  if (!stored && !warned_of_file_)
    if (const LogFile* const failed = from.files.failed()) warn_of(*failed);
  if (of_stream.redirected && of_stream.file_only != stored) redirect(local_rank, stream, stored);
  const bool shown = of_stream.shown && !of_stream.file_only;
  if (shown && of_stream.plain) pass_on(stream, bytes);
  const bool by_lines = shown && !of_stream.plain;
  if (by_lines || of_stream.copied) take_lines(local_rank, stream, bytes, by_lines);
  handle_deadline();
}

void LogRouter::redirect(int local_rank, Stream stream, bool file_only) {
  StreamState& from = state(local_rank, stream);
  from.file_only = file_only;
  set_writer(local_rank, stream);
  // A line that was begun on the console is completed there when the file takes the output again.
  from.lines.finish([&](std::string_view text) { line(local_rank, stream, text, from.shown); });
}

void LogRouter::pass_on(Stream stream, std::string_view bytes) {
  if (bytes.empty() || !has_room(stream, bytes.size())) return;
  console(stream).pending() += bytes;
  // A '\r' does not end a line: the cursor goes to the start of a line that still shows text.
  last_byte_[console_index(stream)] = bytes.back();
}

bool LogRouter::has_room(Stream stream, size_t size_bytes) {
  ConsoleQueue& to = console(stream);
  size_t& not_shown_bytes = not_shown_bytes_[console_index(stream)];
  if (hurried_ && to.waiting_bytes() > kMostHurriedBytes) {
    not_shown_bytes += size_bytes;
    return false;
  }
  if (not_shown_bytes > 0)
    to.pending() +=
        fmt::format("warning: {} bytes of output were not shown, the console did not take them\n",
                    std::exchange(not_shown_bytes, 0));
  return true;
}

void LogRouter::end_open_line(Stream stream) {
  drawing_[console_index(stream)] = nullptr;
  if (std::exchange(last_byte_[console_index(stream)], '\n') != '\n')
    console(stream).pending() += '\n';
}

void LogRouter::take_lines(int local_rank, Stream stream, std::string_view bytes, bool shown) {
  StreamState& from = state(local_rank, stream);
  const bool begins = from.lines.unfinished().text().empty() || bytes.find('\n') != bytes.npos;
  from.lines.take(bytes, [&](std::string_view text) { line(local_rank, stream, text, shown); });
  if (begins) from.line_began = now_;
  if (shown) watch_unfinished(local_rank, stream);
}

void LogRouter::watch_unfinished(int local_rank, Stream stream) {
  StreamState& from = state(local_rank, stream);
  const DrawnLine& unfinished = from.lines.unfinished();
  if (from.redraw_due || from.drawn == unfinished.text()) return;
  if (from.prompts && !unfinished.text().empty())
    redraw_at(now_ + std::max(options_.prompt_wait, options_.fold_window), local_rank, stream);
  else if (unfinished.redrawn())
    redraw_at(now_ + options_.redraw_interval, local_rank, stream);
}

void LogRouter::redraw_at(Clock::time_point due, int local_rank, Stream stream) {
  const auto later = std::upper_bound(
      redraws_.begin(), redraws_.end(), due,
      [](Clock::time_point time, const Redraw& other) { return time < other.due; });
  redraws_.insert(later, {due, local_rank, stream});
  state(local_rank, stream).redraw_due = true;
}

void LogRouter::line(int local_rank, Stream stream, std::string_view text, bool shown) {
  StreamState& from = state(local_rank, stream);
  if (from.copied) copy_if_matching(local_rank, stream, text);
  if (shown && from.prompts && from.drawn) {
    // A line that is already shown in part cannot be folded with equal lines of other ranks.
    draw(local_rank, stream, text);
    if (drawing_[console_index(stream)] == &from) end_open_line(stream);
    from.drawn.reset();
    return;
  }
  const std::optional<std::string> drawn = std::exchange(from.drawn, std::nullopt);
  if (shown && drawn != text) queue(local_rank, stream, text);
}

// Shows an unfinished line as it is now: appends the new text, or draws the whole line again when
// its old text has changed. The new text goes on a line of its own after a line of another stream.
void LogRouter::draw(int local_rank, Stream stream, std::string_view text) {
  StreamState& from = state(local_rank, stream);
  const std::string drawn = std::exchange(from.drawn, std::string(text)).value_or("");
  if (drawn == text || !has_room(stream, text.size())) return;
  ConsoleQueue& to = console(stream);
  const bool open = drawing_[console_index(stream)] == &from;
  const bool longer = text.starts_with(drawn);
  if (!open || (!longer && !to.terminal())) end_open_line(stream);
  if (open && !longer && to.terminal()) to.pending() += "\r\x1b[K";
  if (!open || !longer)
    prefixes_.append(to.pending(), {&local_rank, 1}, time_, options_.color && to.terminal());
  to.pending() += longer ? text.substr(drawn.size()) : text;
  drawing_[console_index(stream)] = &from;
  last_byte_[console_index(stream)] = ' ';
}

void LogRouter::queue(int local_rank, Stream stream, std::string_view text) {
  if (fold_lines_) {
    fold_.add(local_rank, stream, text, now_, time_);
    show_folded();
  } else {
    show(stream, text, {&local_rank, 1}, time_);
  }
}

void LogRouter::show_folded() {
  while (fold_.due(now_)) {
    const FoldedLine folded = fold_.pop();
    show(folded.stream, folded.text, folded.local_ranks, folded.time);
  }
}

void LogRouter::show(Stream stream, std::string_view text, std::span<const int> local_ranks,
                     WallClock::time_point time) {
  if (!has_room(stream, text.size())) return;
  end_open_line(stream);
  ConsoleQueue& to = console(stream);
  prefixes_.append(to.pending(), local_ranks, time, options_.color && to.terminal());
  to.pending() += text;
  to.pending() += '\n';
}

void LogRouter::copy_if_matching(int local_rank, Stream stream, std::string_view text) {
  const std::vector<std::string>& filters =
      stream == Stream::Output ? options_.output_filters : options_.errors_filters;
  if (std::none_of(filters.begin(), filters.end(), [&](const std::string& filter) {
        return text.find(filter) != std::string_view::npos;
      }))
    return;
  std::string copy;
  prefixes_.append(copy, {&local_rank, 1}, time_, /*color=*/false);
  copy += text;
  LogFile& file = filtered_[index_of(stream)];
  if (!file.write(copy, "\n")) warn_of(file);
}

void LogRouter::show_redraws() {
  while (!redraws_.empty() && now_ >= redraws_.front().due) {
    const Redraw redraw = redraws_.front();
    redraws_.pop_front();
    StreamState& from = state(redraw.local_rank, redraw.stream);
    from.redraw_due = false;
    const DrawnLine& unfinished = from.lines.unfinished();
    if (unfinished.text().empty() || from.drawn == unfinished.text()) continue;
    if (from.prompts) {
      draw_if_old(redraw.local_rank, redraw.stream);
    } else if (unfinished.redrawn()) {
      from.drawn = unfinished.text();
      queue(redraw.local_rank, redraw.stream, unfinished.text());
    }
  }
}

// A line that is partly shown is drawn at once. A new line waits, since it may end soon.
void LogRouter::draw_if_old(int local_rank, Stream stream) {
  const StreamState& from = state(local_rank, stream);
  const Clock::time_point old =
      from.line_began + std::max(options_.prompt_wait, options_.fold_window);
  if (from.drawn || now_ >= old)
    draw(local_rank, stream, from.lines.unfinished().text());
  else
    redraw_at(old, local_rank, stream);
}

void LogRouter::finish(int local_rank) {
  look_at_clocks();
  RankState& from = rank(local_rank);
  from.files.finish();
  for (const Stream stream : kStreams) {
    const StreamState& ended = state(local_rank, stream);
    state(local_rank, stream).lines.finish([&](std::string_view text) {
      line(local_rank, stream, text, ended.shown && !ended.plain);
    });
    if (ended.plain && last_byte_[console_index(stream)] != '\r') end_open_line(stream);
  }
  from.open = false;
  for (const Stream stream : kStreams) set_writer(local_rank, stream);
  handle_deadline();
}

void LogRouter::end_open_lines() {
  for (const Stream stream : kStreams)
    if (drawing_[console_index(stream)] != nullptr) end_open_line(stream);
  flush();
}

void LogRouter::note(int local_rank, std::string_view line) { rank(local_rank).files.note(line); }

void LogRouter::set_writer(int local_rank, Stream stream) {
  const StreamState& from = state(local_rank, stream);
  fold_.set_writer(local_rank, stream,
                   rank(local_rank).open && from.shown && !from.plain && !from.file_only);
}

bool LogRouter::accepts(int local_rank, Stream stream) const {
  return hurried_ || !rank(local_rank).streams[index_of(stream)].shown ||
         !consoles_[console_index(stream)].behind();
}

std::optional<LogRouter::Clock::time_point> LogRouter::next_deadline() const {
  std::optional<Clock::time_point> next = fold_.next_due();
  if (!redraws_.empty()) next = std::min(next.value_or(redraws_.front().due), redraws_.front().due);
  return next;
}

std::array<int, 2> LogRouter::waiting_consoles() const {
  std::array<int, 2> descriptors = {-1, -1};
  for (size_t index = 0; index < descriptors.size(); ++index)
    if (consoles_[index].waiting()) descriptors[index] = consoles_[index].descriptor();
  return descriptors;
}

void LogRouter::handle_deadline() {
  look_at_clocks();
  show_folded();
  show_redraws();
  flush();
}

void LogRouter::look_at_clocks() {
  now_ = Clock::now();
  time_ = WallClock::now();
}

void LogRouter::flush() {
  for (size_t index = 0; index < 2; ++index) {
    consoles_[index].flush();
    const int failure = consoles_[index].failure();
    if (failure == 0 || warned_of_console_[index]) continue;
    warned_of_console_[index] = true;
    if (one_console_ || options_.console == Console::Silent) continue;
    warn(fmt::format("{}: {}; the job goes on without it",
                     index == 0 ? "standard output" : "standard error", std::strerror(failure)));
    consoles_[0].flush();
  }
}

void LogRouter::close(int interrupt, std::optional<std::chrono::milliseconds> patience) {
  while (!fold_.empty()) {
    const FoldedLine folded = fold_.pop();
    show(folded.stream, folded.text, folded.local_ranks, folded.time);
  }
  flush();
  const int timeout_ms = patience ? static_cast<int>(patience->count()) : -1;
  while (consoles_[0].waiting() || consoles_[1].waiting()) {
    const std::array<int, 2> waiting = waiting_consoles();
    pollfd watched[3] = {
        {waiting[0], POLLOUT, 0}, {waiting[1], POLLOUT, 0}, {interrupt, POLLIN, 0}};
    const int ready = ::poll(watched, 3, timeout_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0 || (watched[2].revents & POLLIN) != 0) return;
    flush();
  }
  for (const Stream stream : kStreams) has_room(stream, 0);  // warns of dropped output
  flush();
}

void LogRouter::warn(std::string_view text) {
  // The console that still works shows the error.
  ConsoleQueue& errors = console(Stream::Errors);
  ConsoleQueue& to = errors.failure() == 0 ? errors : console(Stream::Output);
  const bool with_host = options_.prefix == LinePrefix::HostRank && !options_.host.empty();
  to.pending() +=
      fmt::format("warning: {}{}{}\n", with_host ? options_.host : "", with_host ? ": " : "", text);
}

void LogRouter::warn_of(const LogFile& file) {
  if (std::exchange(warned_of_file_, true)) return;
  warn(fmt::format(
      "{}: {}; the job goes on, and output that log files do not take is only on the console",
      file.path().string(), std::strerror(file.failure())));
}

}  // namespace convoy::launch
