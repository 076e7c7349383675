// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/file_timers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace convoy::launch {
namespace {

// The longest line: longer lines of several writers could mix in the pipe (PIPE_BUF).
constexpr size_t kLongestTimerLine = 4096;
constexpr size_t kShownLetters = 200;
constexpr int kLargestSignal = 64;

std::string fit_for_a_console(std::string text) {
  for (char& letter : text)
    if (static_cast<unsigned char>(letter) < 32 || letter == 127) letter = '?';
  if (text.size() > kShownLetters) text = text.substr(0, kShownLetters) + "...";
  return text;
}

std::optional<int> number_of(const nlohmann::json& line, const char* key, int least, int most) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_integer()) return std::nullopt;
  const auto number = found->get<int64_t>();
  if (number < least || number > most) return std::nullopt;
  return static_cast<int>(number);
}

}  // namespace

void FileTimers::take(std::string_view bytes) {
  rest_ += bytes;
  size_t begin = 0;
  for (size_t end = 0; (end = rest_.find('\n', begin)) != std::string::npos; begin = end + 1)
    take_line(rest_.substr(begin, end - begin));
  rest_.erase(0, begin);
  if (rest_.size() <= kLongestTimerLine) return;
  damaged_ = fit_for_a_console(rest_);
  rest_.clear();
}

void FileTimers::take_line(const std::string& text) {
  const auto line = nlohmann::json::parse(text, nullptr, false);
  std::optional<pid_t> pid;
  std::optional<int> signal;
  bool complete = line.is_object() && line.contains("scope_id") && line["scope_id"].is_string() &&
                  line.contains("expiration_time") && line["expiration_time"].is_number();
  if (complete) {
    pid = number_of(line, "pid", 1, std::numeric_limits<pid_t>::max());
    signal = number_of(line, "signal", std::numeric_limits<int>::min(), kLargestSignal);
    complete = pid && signal && std::isfinite(line["expiration_time"].get<double>());
  }
  if (!complete) {
    damaged_ = fit_for_a_console(text);
    return;
  }
  const auto key = std::pair(*pid, line["scope_id"].get<std::string>());
  const auto expiration_s = line["expiration_time"].get<double>();
  if (expiration_s < 0)
    timers_.erase(key);
  else
    timers_[key] = {expiration_s, std::max(0, *signal)};
}

std::vector<TimerExpiry> FileTimers::expired(double now_s) {
  std::map<pid_t, std::vector<std::pair<Timer, std::string>>> found;
  for (const auto& [key, timer] : timers_)
    if (timer.expiration_s <= now_s) found[key.first].emplace_back(timer, key.second);
  std::vector<TimerExpiry> expiries;
  for (auto& [pid, timers] : found) {
    std::stable_sort(timers.begin(), timers.end(), [](const auto& left, const auto& right) {
      return left.first.expiration_s < right.first.expiration_s;
    });
    const auto with_signal = std::find_if(timers.begin(), timers.end(),
                                          [](const auto& timer) { return timer.first.signal > 0; });
    const auto& [timer, scope] = with_signal == timers.end() ? timers.front() : *with_signal;
    expiries.push_back({pid, fit_for_a_console(scope), timer.signal, now_s - timer.expiration_s});
  }
  std::erase_if(timers_, [&](const auto& entry) { return found.contains(entry.first.first); });
  return expiries;
}

std::optional<double> FileTimers::next() const {
  std::optional<double> first;
  for (const auto& [key, timer] : timers_)
    first = std::min(first.value_or(timer.expiration_s), timer.expiration_s);
  return first;
}

std::optional<std::string> FileTimers::damaged_line() { return std::exchange(damaged_, {}); }

}  // namespace convoy::launch
