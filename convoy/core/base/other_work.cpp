// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/other_work.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "convoy/core/base/usable_cpus.h"

namespace convoy {
namespace {

// The kernel counts in ticks of a hundredth of a second, so a sample has five ticks per CPU.
constexpr double kSampleSeconds = 0.05;

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

std::optional<double> busy_seconds(const std::string& stat, const std::vector<int>& cpus) {
  std::istringstream lines(stat);
  double ticks = 0;
  size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    fields >> name;
    if (!name.starts_with("cpu") || name == "cpu") continue;
    const bool is_own = std::any_of(cpus.begin(), cpus.end(),
                                    [&](int cpu) { return name == "cpu" + std::to_string(cpu); });
    if (!is_own) continue;
    ++found;
    // The columns are user nice system idle iowait irq softirq steal. Guest time is part of user.
    double value = 0;
    for (int column = 0; column < 8 && fields >> value; ++column)
      if (column != 3 && column != 4) ticks += value;
  }
  const auto ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  if (found != cpus.size() || found == 0 || ticks_per_second <= 0) return std::nullopt;
  return ticks / ticks_per_second;
}

double cores_of_others(const CpuTimes& before, const CpuTimes& after) {
  const double seconds = after.at - before.at;
  if (seconds <= 0) return 0;
  return std::max(0.0, (after.busy - before.busy - (after.own - before.own)) / seconds);
}

int free_cores(int in_mask, int quota, double busy_with_others) {
  const int left = in_mask - static_cast<int>(std::lround(busy_with_others));
  return std::max(1, quota > 0 ? std::min(quota, left) : left);
}

OtherWork::OtherWork(std::filesystem::path proc)
    : proc_(std::move(proc)), cpus_(allowed_cpus()), begin_(now()) {}

std::optional<double> OtherWork::busy_cores() const {
  if (!begin_) return std::nullopt;
  const double missing = begin_->at + kSampleSeconds - seconds_of(CLOCK_MONOTONIC);
  if (missing > 0) std::this_thread::sleep_for(std::chrono::duration<double>(missing));
  const std::optional<CpuTimes> end = now();
  if (!end) return std::nullopt;
  return cores_of_others(*begin_, *end);
}

std::optional<CpuTimes> OtherWork::now() const {
  std::ifstream file(proc_ / "stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::optional<double> busy = busy_seconds(text, cpus_);
  if (!busy) return std::nullopt;
  return CpuTimes{.at = seconds_of(CLOCK_MONOTONIC),
                  .busy = *busy,
                  .own = seconds_of(CLOCK_PROCESS_CPUTIME_ID)};
}

}  // namespace convoy
