// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/signals/uci_har.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/quiet_thread.h"
#include "convoy/core/base/text_as.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }
bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

// Parses a decimal number whose digits and power of ten are both exact as doubles (at most 19
// digits, 15 of them significant). A quotient or product of two exact doubles is rounded once, so
// the result equals the result of any correct parser. nullptr: another method is needed.
const char* parse_exact(const char* at, const char* end, double& value) {
  static constexpr std::array<double, 23> kPowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  uint64_t mantissa = 0;
  int digits = 0;
  int exponent = 0;
  const char* const first = at;
  for (; at != end && is_digit(*at); ++at, ++digits)
    mantissa = mantissa * 10 + static_cast<uint64_t>(*at - '0');
  if (at != end && *at == '.') {
    const char* const point = ++at;
    for (; at != end && is_digit(*at); ++at, ++digits)
      mantissa = mantissa * 10 + static_cast<uint64_t>(*at - '0');
    exponent = -static_cast<int>(std::min<ptrdiff_t>(at - point, 99));
  }
  if (digits == 0 || digits > 19 || at == first) return nullptr;
  if (at != end && (*at == 'e' || *at == 'E')) {
    int power = 0;
    const char* from = at + 1;
    if (from != end && *from == '+') ++from;
    const auto [stop, error] = std::from_chars(from, end, power);
    if (error != std::errc() || power > 99 || power < -99) return nullptr;
    exponent += power;
    at = stop;
  }
  if (mantissa > (uint64_t{1} << 53) || exponent > 22 || exponent < -22) return nullptr;
  const auto whole = static_cast<double>(mantissa);
  const auto power = kPowers[static_cast<size_t>(std::abs(exponent))];
  value = exponent < 0 ? whole / power : whole * power;
  if (negative) value = -value;
  return at;
}

const char* parse_number(const char* at, const char* end, double& value) {
  if (end - at > 1 && *at == '+' && (is_digit(at[1]) || at[1] == '.')) ++at;
  if (const char* const stop = parse_exact(at, end, value)) return stop;
  const auto [stop, error] = std::from_chars(at, end, value);
  return error == std::errc() ? stop : at;
}

// The word at `at`, shortened for errors.
std::string_view word_at(const char* at, const char* end) {
  constexpr ptrdiff_t kMost = 40;
  const char* stop = at;
  while (stop != end && !is_blank(*stop) && *stop != '\n' && stop - at < kMost) ++stop;
  return {at, static_cast<size_t>(stop - at)};
}

// Reads the numbers of a text, line by line.
class NumberLines {
 public:
  explicit NumberLines(const fs::path& path) : path_(path), text_(read_file(path)) {
    // Blank lines at the end of the file are ignored.
    while (!text_.empty() && (is_blank(text_.back()) || text_.back() == '\n')) text_.pop_back();
    at_ = text_.data();
    end_ = at_ + text_.size();
  }

  bool done() const { return at_ == end_; }
  int64_t line() const { return line_; }
  size_t bytes() const { return text_.size(); }

  // Appends the numbers of the next line to `values`. Returns their number.
  int64_t take_line(std::vector<float>& values) {
    ++line_;
    int64_t count = 0;
    for (;; ++count) {
      while (at_ != end_ && is_blank(*at_)) ++at_;
      if (at_ == end_ || *at_ == '\n') break;
      double value = 0;
      const char* const stop = parse_number(at_, end_, value);
      const auto rounded = static_cast<float>(value);
      if (stop == at_ || (stop != end_ && !is_blank(*stop) && *stop != '\n') ||
          !std::isfinite(rounded))
        fail(fmt::format("wanted a finite number at place {} of the line, found `{}`", count + 1,
                         word_at(at_, end_)),
             "a line holds the numbers of one window, with blanks between them");
      values.push_back(rounded);
      at_ = stop;
    }
    if (at_ != end_) ++at_;
    return count;
  }

  // The integer on the next line, which must have no other number. numpy.savetxt writes 3 as
  // 3.000e+00.
  int64_t take_code(const char* what) {
    constexpr double kExact = 9007199254740992;  // 2^53
    ++line_;
    std::string_view text(at_, static_cast<size_t>(std::find(at_, end_, '\n') - at_));
    at_ = std::min(at_ + text.size() + 1, end_);
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    if (const auto whole = text_as<int64_t>(text)) return *whole;
    double value = 0;
    const char* const end = text.data() + text.size();
    if (text.empty() || parse_number(text.data(), end, value) != end ||
        value != std::floor(value) || std::abs(value) > kExact)
      fail(fmt::format("wanted one whole number, a {}, found `{}`", what, text.substr(0, 40)),
           "the files of classify.data_dir hold numbers, a line each; names of labels stand in "
           "activity_labels.txt, as `1 WALKING`");
    return static_cast<int64_t>(value);
  }

  [[noreturn]] void fail(const std::string& message, const std::string& hint) const {
    throw DataError(
        message, {.file = path_.string(), .line = line_, .key = "classify.data_dir", .hint = hint});
  }

 private:
  fs::path path_;
  std::string text_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  int64_t line_ = 0;
};

struct Channel {
  std::vector<float> values;
  int64_t windows = 0;
  int64_t rows = 0;  // numbers per line
};

Channel read_channel(const fs::path& path) {
  constexpr size_t kUsualBytesOfNumber = 9;
  NumberLines lines(path);
  Channel channel;
  channel.values.reserve(lines.bytes() / kUsualBytesOfNumber);
  while (!lines.done()) {
    const int64_t count = lines.take_line(channel.values);
    if (channel.windows == 0) channel.rows = count;
    if (count != channel.rows || count == 0)
      lines.fail(
          fmt::format("wanted {} numbers as in the first line, found {}", channel.rows, count),
          "all windows of a file have the same length: correct this line");
    ++channel.windows;
  }
  if (channel.windows == 0)
    throw DataError("the file holds no windows",
                    {.file = path.string(), .hint = "write the numbers of a window on each line"});
  return channel;
}

// Reads a file with one integer per line.
std::vector<int64_t> read_codes(const fs::path& path, const char* what) {
  NumberLines lines(path);
  std::vector<int64_t> codes;
  while (!lines.done()) codes.push_back(lines.take_code(what));
  return codes;
}

std::string file_ending(const std::string& split) { return "_" + split + ".txt"; }

fs::path signals_folder(const fs::path& folder, const std::string& split) {
  return folder / split / "Inertial Signals";
}

// The files of the channels by name.
std::map<std::string, fs::path> channel_files(const fs::path& folder, const std::string& split) {
  const fs::path signals = signals_folder(folder, split);
  std::error_code failure;
  std::map<std::string, fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(signals, failure)) {
    const std::string name = entry.path().filename().string();
    const std::string ending = file_ending(split);
    if (name.size() > ending.size() && name.ends_with(ending))
      files[name.substr(0, name.size() - ending.size())] = entry.path();
  }
  if (failure || files.empty())
    throw DataError(fmt::format("wanted a folder with files NAME{}, one for each channel, found {}",
                                file_ending(split), failure ? "no folder" : "none"),
                    {.file = signals.string(),
                     .hint = "classify.data_dir is the folder that holds train and test in the "
                             "layout of UCI HAR"});
  return files;
}

// Reads at most `threads` files at a time; throws the error of the first file in order that has
// one.
std::vector<Channel> read_channels(const std::vector<fs::path>& paths, int64_t threads) {
  std::vector<Channel> channels(paths.size());
  std::vector<std::exception_ptr> failures(paths.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t index = next++; index < paths.size(); index = next++) try {
        channels[index] = read_channel(paths[index]);
      } catch (...) {
        failures[index] = std::current_exception();
      }
  };
  std::vector<std::thread> helpers;
  const auto most = static_cast<int64_t>(paths.size());
  for (int64_t helper = 1; helper < std::min(threads, most); ++helper)
    helpers.push_back(quiet_thread(work));
  work();
  for (std::thread& helper : helpers) helper.join();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return channels;
}

void require_windows(int64_t found, int64_t wanted, const fs::path& path) {
  if (found != wanted)
    throw DataError(
        fmt::format("wanted {} lines, one for each window, found {}", wanted, found),
        {.file = path.string(),
         .hint =
             "this file and those of the channels belong to different data: get the folder again"});
}

}  // namespace

bool has_signal_split(const fs::path& folder, const std::string& split) {
  std::error_code ignored;
  return fs::is_directory(signals_folder(folder, split), ignored);
}

SignalWindows read_signal_split(const fs::path& folder, const std::string& split, int64_t threads) {
  SignalWindows windows;
  std::vector<fs::path> paths;
  for (const auto& [name, path] : channel_files(folder, split)) {
    windows.channel_names.push_back(name);
    paths.push_back(path);
  }
  const std::vector<Channel> channels = read_channels(paths, threads);
  windows.num_windows = channels[0].windows;
  windows.window_rows = channels[0].rows;
  for (size_t index = 1; index < channels.size(); ++index) {
    require_windows(channels[index].windows, windows.num_windows, paths[index]);
    if (channels[index].rows != windows.window_rows)
      throw DataError(
          fmt::format("wanted {} numbers a line as in {}, found {}", windows.window_rows,
                      paths[0].filename().string(), channels[index].rows),
          {.file = paths[index].string(),
           .line = 1,
           .hint = "all channels have windows of one length: this file belongs to other data"});
  }
  windows.values.resize(channels[0].values.size() * channels.size());
  for (size_t index = 0; index < channels.size(); ++index)
    for (size_t at = 0; at < channels[index].values.size(); ++at)
      windows.values[at * channels.size() + index] = channels[index].values[at];
  const fs::path classes = folder / split / ("y" + file_ending(split));
  windows.classes = read_codes(classes, "label");
  require_windows(static_cast<int64_t>(windows.classes.size()), windows.num_windows, classes);
  const fs::path subjects = folder / split / ("subject" + file_ending(split));
  if (fs::exists(subjects)) {
    windows.subjects = read_codes(subjects, "subject");
    require_windows(static_cast<int64_t>(windows.subjects.size()), windows.num_windows, subjects);
  }
  return windows;
}

}  // namespace convoy::data
