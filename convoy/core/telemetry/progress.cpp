// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "convoy/core/base/terminal_size.h"

namespace convoy::telemetry {
namespace {

constexpr double kFrameSeconds = 0.1;
constexpr std::string_view kClearLine = "\r\x1b[K";
constexpr std::string_view kFilledColor = "\x1b[36m";
constexpr std::string_view kFaint = "\x1b[2m";
constexpr std::string_view kPlain = "\x1b[0m";

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool wants_bar(const ProgressOptions& options, const TelemetryEnvironment& environment) {
  if (options.style != ProgressStyle::Auto) return options.style == ProgressStyle::Bar;
  if (!environment.progress.empty()) return environment.progress == "bar";
  return ::isatty(options.descriptor) == 1;
}

int64_t percent(int64_t done, int64_t total) { return std::min<int64_t>(100, 100 * done / total); }

// The figures of `text`, which are two blanks apart, that fit into `room`. If even the first figure
// does not fit, it is cut.
std::string whole_figures(const std::string& text, size_t room) {
  if (text.size() <= room) return text;
  const size_t end = text.rfind("  ", room);
  return text.substr(0, end == std::string::npos || end == 0 ? room : end);
}

std::string repeated(std::string_view piece, int64_t count) {
  std::string text;
  for (int64_t done = 0; done < count; ++done) text += piece;
  return text;
}

}  // namespace

std::string duration_text(double seconds) {
  const int64_t whole = std::llround(std::max(0.0, seconds));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{}h {:02}m", whole / 3600, whole / 60 % 60);
  return fmt::format("{}d {}h", whole / 86400, whole / 3600 % 24);
}

std::string count_text(double count) {
  if (count < 1000) return fmt::format("{:.0f}", count);
  if (count < 99950) return fmt::format("{:.1f}k", count / 1e3);
  if (count < 999500) return fmt::format("{:.0f}k", count / 1e3);
  if (count < 999.5e6) return fmt::format("{:.2f}M", count / 1e6);
  return fmt::format("{:.2f}G", count / 1e9);
}

Progress::Progress(ProgressOptions options) : options_(std::move(options)) {
  if (!options_.now_seconds) options_.now_seconds = steady_seconds;
  const TelemetryEnvironment environment = read_environment();
  if (options_.style == ProgressStyle::Auto && environment.progress == "none")
    options_.style = ProgressStyle::None;
  bar_ = wants_bar(options_, environment);
  color_ = bar_ && (options_.color == ColorChoice::Auto
                        ? !environment.no_color
                        : use_color(options_.color, options_.descriptor, environment));
  if (const int64_t columns = terminal_size(options_.descriptor).columns; columns > 0)
    columns_ = columns;
  begin_seconds_ = options_.now_seconds();
  last_.done = options_.start;
}

Progress::~Progress() {
  if (bar_on_screen_) write("\n");
}

double Progress::remaining_seconds(const ProgressFigures& figures) const {
  const int64_t done = figures.done;
  if (done < options_.total && !std::isnan(figures.seconds_left)) return figures.seconds_left;
  const auto here = static_cast<double>(done - options_.start);
  const double elapsed = options_.now_seconds() - begin_seconds_;
  if (here <= 0 || options_.total <= done) return options_.total > 0 && here > 0 ? 0 : -1;
  return elapsed / here * static_cast<double>(options_.total - done);
}

std::string Progress::figures_text(const ProgressFigures& figures) const {
  std::string text;
  if (figures.loss) text += fmt::format("  loss {:.4f}", *figures.loss);
  if (figures.eval_loss) text += fmt::format("  eval {:.4f}", *figures.eval_loss);
  if (figures.per_second > 0)
    text += fmt::format("  {} {}", count_text(figures.per_second), figures.per_second_unit);
  if (figures.memory_bytes >= 0) text += "  " + bytes_text(figures.memory_bytes);
  if (!figures.extra.empty()) text += "  " + figures.extra;
  return text;
}

std::string Progress::time_text(const ProgressFigures& figures) const {
  // While no speed is known, no time left is shown.
  if (figures.per_second == 0 && figures.done < options_.total) return "";
  const double left = remaining_seconds(figures);
  if (left > 0 || (left == 0 && figures.done < options_.total))
    return fmt::format("  {} left", duration_text(left));
  if (left < 0) return "";
  return fmt::format("  in {}", duration_text(options_.now_seconds() - begin_seconds_));
}

std::string Progress::line_text(const ProgressFigures& figures) const {
  std::string text = fmt::format("{}: {} {}", options_.label, options_.unit, figures.done);
  if (options_.total > 0)
    text += fmt::format("/{} {:3}%", options_.total, percent(figures.done, options_.total));
  return text + figures_text(figures) + time_text(figures) + "\n";
}

std::string Progress::bar_text(const ProgressFigures& figures) const {
  const std::string tail = figures_text(figures) + time_text(figures);
  std::string head = options_.label + " ";
  std::string count = fmt::format(" {}", figures.done);
  if (options_.total > 0)
    count += fmt::format("/{} {:3}%", options_.total, percent(figures.done, options_.total));
  // One column stays free, because a full line would wrap on some terminals.
  const auto used = static_cast<int64_t>(head.size() + count.size() + tail.size());
  const int64_t room = std::min<int64_t>(30, columns_ - 1 - used);
  if (options_.total <= 0 || room < 5) {
    // The time comes first, because the end of the line may be cut.
    const std::string text = head + count.substr(1) + time_text(figures) + figures_text(figures);
    return whole_figures(text, static_cast<size_t>(std::max<int64_t>(columns_ - 1, 1)));
  }
  const int64_t filled = std::clamp<int64_t>(room * figures.done / options_.total, 0, room);
  const std::string full = repeated("━", filled);
  const std::string empty = repeated(color_ ? "━" : "─", room - filled);
  if (!color_) return head + full + empty + count + tail;
  return fmt::format("{}{}{}{}{}{}{}{}{}", head, kFilledColor, full, kPlain, kFaint, empty, kPlain,
                     count, tail);
}

void Progress::write(std::string_view text) const {
  [[maybe_unused]] const ssize_t written = ::write(options_.descriptor, text.data(), text.size());
}

void Progress::draw_bar(const ProgressFigures& figures) {
  write(fmt::format("{}{}", kClearLine, bar_text(figures)));
  bar_on_screen_ = true;
}

bool Progress::line_is_due(const ProgressFigures& figures) const {
  if (shown_done_ < 0) return true;
  const double waited = options_.now_seconds() - shown_seconds_;
  if (waited < options_.line_seconds) return false;
  return options_.total <= 0 || 20 * (figures.done - shown_done_) >= options_.total ||
         waited >= slowest_line_seconds();
}

double Progress::slowest_line_seconds() const {
  // A job of several days still prints a line now and then.
  return std::max(20 * options_.line_seconds, 600.0);
}

void Progress::update(const ProgressFigures& figures) {
  if (finished_ || options_.style == ProgressStyle::None) return;
  last_ = figures;
  const double now = options_.now_seconds();
  if (options_.quiet_seconds > 0 &&
      now - begin_seconds_ < (bar_ ? options_.quiet_seconds : options_.line_seconds))
    return;
  if (bar_) {
    if (shown_done_ >= 0 && now - shown_seconds_ < kFrameSeconds) return;
    draw_bar(figures);
  } else {
    if (!line_is_due(figures)) return;
    write(line_text(figures));
  }
  shown_seconds_ = now;
  shown_done_ = figures.done;
}

void Progress::message(std::string_view line) {
  if (!bar_on_screen_) {
    write(fmt::format("{}\n", line));
    return;
  }
  write(fmt::format("{}{}\n{}", kClearLine, line, bar_text(last_)));
}

void Progress::finish() {
  if (std::exchange(finished_, true) || options_.style == ProgressStyle::None) return;
  if (bar_) {
    if (shown_done_ < 0) return;
    draw_bar(last_);
    write("\n");
    bar_on_screen_ = false;
  } else if (last_.done != shown_done_ && last_.done > options_.start &&
             (options_.quiet_seconds == 0 || shown_done_ >= 0)) {
    write(line_text(last_));
  }
}

}  // namespace convoy::telemetry
