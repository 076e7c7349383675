// SPDX-License-Identifier: Apache-2.0
//
// The terminal view of `convoy gpus watch`: a line of figures per device, and curves of its load.
// Makes lines of text only; the caller writes them to the terminal.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "convoy/machine/monitor/watch/machine_reading.h"

namespace convoy::monitor {

struct ScreenSize {
  int columns = 80;
  int rows = 24;
};

class Screen {
 public:
  explicit Screen(std::string title) : title_(std::move(title)) {}

  void add(const MachineReading& reading);
  // At most size.rows lines of at most size.columns characters; colour codes do not count. With
  // `paused` a line says so.
  std::vector<std::string> lines(const ScreenSize& size, bool color, bool paused) const;

 private:
  struct Curve {
    std::string label;
    std::string figures;  // text beside the curve
    std::deque<double> percents = {};
    bool lost = false;
  };
  void put(const std::string& label, const std::string& figures, std::optional<double> percent,
           bool lost);

  std::string title_;
  std::vector<std::string> order_;
  std::map<std::string, Curve> curves_;
  double elapsed_s_ = 0;
};

// Percents as a chart of `height` lines of `width` columns, the newest on the right.
std::vector<std::string> bar_chart(const std::deque<double>& percents, int width, int height);

// A heading, and a line per device, as `nvidia-smi dmon` prints them.
std::string dmon_heading();
std::string dmon_rows(const MachineReading& reading);

}  // namespace convoy::monitor
