// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/encode_progress.h"

#include <utility>

#include "convoy/core/base/counted.h"

namespace convoy::data {
namespace {

constexpr std::chrono::seconds kBetweenLines{10};
constexpr int64_t kRowsBetweenLooks = 256;

}  // namespace

EncodeProgress::EncodeProgress(const Log& log, std::string file)
    : log_(log), file_(std::move(file)), start_(Clock::now()), next_(start_ + kBetweenLines) {}

void EncodeProgress::add_row() {
  if (++rows_ % kRowsBetweenLooks != 0) return;
  if (const Clock::time_point now = Clock::now(); now >= next_) say(now);
}

void EncodeProgress::say(Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  log_.info(fmt::format("encoding {}: {} in {:.0f} s, {:.0f} a second", file_,
                        counted(rows_, "row"), seconds, static_cast<double>(rows_) / seconds));
  next_ = now + kBetweenLines;
}

}  // namespace convoy::data
