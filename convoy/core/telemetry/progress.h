// SPDX-License-Identifier: Apache-2.0
//
// Progress of a long job: a bar on a terminal, lines at intervals elsewhere. Driven by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "convoy/core/base/bytes_text.h"
#include "convoy/core/telemetry/environment.h"

namespace convoy::telemetry {

enum class ProgressStyle { Auto, Bar, Lines, None };

struct ProgressOptions {
  std::string label = "train";
  std::string unit = "step";
  int64_t total = 0;  // 0 = unknown
  int64_t start = 0;  // done before this process began (a resumed run); not part of the rate
  int descriptor = 2;
  ProgressStyle style = ProgressStyle::Auto;  // Auto: Bar on a terminal, else Lines
  ColorChoice color = ColorChoice::Auto;
  // For ProgressStyle::Lines: a line is written for the first and the last step, and in between
  // once per max(line_seconds, 5 % of the work), but at least once per max(20 line_seconds, 600 s).
  double line_seconds = 30;
  double quiet_seconds = 0;  // above 0: no bar before this time, no line before line_seconds
  std::function<double()> now_seconds{};  // a monotonic clock; empty = the system's
};

// Numbers to show, in this order; negative or NaN = not shown. A known loss is always shown: a
// training from rewards has losses below 0.
struct ProgressFigures {
  int64_t done = 0;
  std::optional<double> loss = {};
  std::optional<double> eval_loss = {};
  double per_second = -1;  // in `per_second_unit`; 0: no speed yet, so no time left is shown
  std::string per_second_unit = "tokens/s";
  int64_t memory_bytes = -1;
  std::string extra{};  // other figures in the job's own words; empty = none
  // The job's own estimate of the seconds left; negative = unknown, NaN = estimate from the share
  // that is done.
  double seconds_left = std::numeric_limits<double>::quiet_NaN();
};

class Progress {
 public:
  explicit Progress(ProgressOptions options);
  ~Progress();  // leaves a terminal on a fresh line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const ProgressFigures& figures);
  // Prints a whole line above the bar.
  void message(std::string_view line);
  // Shows the last figures, once. Further calls do nothing.
  void finish();

 private:
  std::string bar_text(const ProgressFigures& figures) const;
  std::string line_text(const ProgressFigures& figures) const;
  std::string figures_text(const ProgressFigures& figures) const;
  std::string time_text(const ProgressFigures& figures) const;
  double remaining_seconds(const ProgressFigures& figures) const;
  bool line_is_due(const ProgressFigures& figures) const;
  double slowest_line_seconds() const;
  void draw_bar(const ProgressFigures& figures);
  void write(std::string_view text) const;

  ProgressOptions options_;
  bool bar_ = false;
  bool color_ = false;
  int64_t columns_ = 80;
  double begin_seconds_ = 0;
  double shown_seconds_ = 0;
  int64_t shown_done_ = -1;
  bool bar_on_screen_ = false;
  bool finished_ = false;
  ProgressFigures last_;
};

std::string duration_text(double seconds);  // "47s", "3m 05s", "2h 14m", "3d 4h"
using convoy::bytes_text;
std::string count_text(double count);  // "950", "12.3k", "4.56M"

}  // namespace convoy::telemetry
