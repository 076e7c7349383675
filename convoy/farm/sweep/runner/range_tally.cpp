// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/range_tally.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"

namespace convoy::sweep {

void RangeTally::add(int64_t block, const Tally& tally) {
  if (!blocks_.empty() && blocks_.back().number == block) {
    blocks_.back().tally.merge(tally);
  } else {
    blocks_.push_back({block, tally});
  }
}

void RangeTally::append(const RangeTally& right) {
  for (const Block& block : right.blocks_) add(block.number, block.tally);
  microseconds_ += right.microseconds_;
  for (const std::string& gpu : right.gpus_) add_gpu(gpu);
}

void RangeTally::add_gpu(const std::string& name) {
  const auto place = std::lower_bound(gpus_.begin(), gpus_.end(), name);
  if (place == gpus_.end() || *place != name) gpus_.insert(place, name);
}

Tally RangeTally::total() const {
  Tally sum;
  for (const Block& block : blocks_) sum.merge(block.tally);
  return sum;
}

std::string RangeTally::text() const {
  nlohmann::ordered_json object;
  object["microseconds"] = microseconds_;
  if (!gpus_.empty()) object["gpus"] = gpus_;
  object["blocks"] = nlohmann::ordered_json::array();
  for (const Block& block : blocks_) {
    auto tally = nlohmann::ordered_json::parse(block.tally.json());
    tally["block"] = block.number;
    object["blocks"].push_back(std::move(tally));
  }
  return object.dump();
}

RangeTally RangeTally::parse(const std::string& text) {
  try {
    const auto object = nlohmann::json::parse(text);
    RangeTally range;
    object.at("microseconds").get_to(range.microseconds_);
    if (object.contains("gpus")) object.at("gpus").get_to(range.gpus_);
    for (const auto& block : object.at("blocks"))
      range.blocks_.push_back({block.at("block").get<int64_t>(), Tally::parse(block.dump())});
    return range;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("a damaged range of guesses: {}", error.what()),
                    {.hint = "`convoy sweep recover --store STORE` saves the readable results"});
  }
}

std::optional<Tally> RangeTally::stopped(const StopRule& rule) const {
  if (!rule.any()) return std::nullopt;
  Tally sum;
  for (const Block& block : blocks_) {
    sum.merge(block.tally);
    if (sum.guesses == checkpoint_begin(block.number + 1) && rule.met(sum)) return sum;
  }
  return std::nullopt;
}

std::string merge_range_payloads(const std::string& left, const std::string& right) {
  RangeTally sum = RangeTally::parse(left);
  sum.append(RangeTally::parse(right));
  return sum.text();
}

RangeTally run_range(const GuessExperiment& experiment, const PlannedCell& planned, int64_t first,
                     int64_t count) {
  RangeTally range;
  const int64_t end = first + count;
  while (first < end) {
    int64_t stop = end;
    const int64_t block = planned.stop.any() ? checkpoint_block(first) : 0;
    if (planned.stop.any()) stop = std::min(end, checkpoint_begin(block + 1));
    range.add(block,
              experiment.run(static_cast<uint64_t>(first), static_cast<uint64_t>(stop - first)));
    first = stop;
  }
  CONVOY_INVARIANT(range.total().guesses == count, "{} guesses were made where {} were wanted",
                   range.total().guesses, count);
  return range;
}

}  // namespace convoy::sweep
