// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/planned_cell.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/base/hash.h"

namespace convoy::sweep {
namespace {

constexpr int kFirstOctave = 16;
// 2^16 * 2^(k / 4), rounded.
constexpr std::array<int64_t, 4> kQuarters = {65536, 77936, 92682, 110218};

}  // namespace

bool StopRule::met(const Tally& tally) const {
  if (accepted > 0 && tally.accepted - tally.non_finite >= accepted) return true;
  const double found = tally.standard_error();
  // A mean of a handful may have an accidental error of 0.
  return standard_error > 0 && tally.accepted >= 30 && std::isfinite(found) &&
         found <= standard_error;
}

std::string PlannedCell::parameters() const {
  nlohmann::json object;
  object["cell"] = nlohmann::json::parse(cell.parameters);
  object["method"] = cell.method;
  object["seed"] = cell.seed;
  if (guesses > 0) object["guesses"] = guesses;
  if (stop.accepted > 0) object["target_accepted"] = stop.accepted;
  if (stop.standard_error > 0) object["target_standard_error"] = stop.standard_error;
  return object.dump();
}

jobs::NewTask PlannedCell::task() const {
  return {.parameters = parameters(), .units = std::max<int64_t>(guesses, 1), .priority = priority};
}

PlannedCell PlannedCell::parse(const std::string& parameters) {
  try {
    const auto object = nlohmann::json::parse(parameters);
    PlannedCell planned;
    planned.cell.parameters = object.at("cell").dump();
    object.at("method").get_to(planned.cell.method);
    object.at("seed").get_to(planned.cell.seed);
    planned.guesses = object.value("guesses", int64_t{0});
    planned.stop.accepted = object.value("target_accepted", int64_t{0});
    planned.stop.standard_error = object.value("target_standard_error", 0.0);
    return planned;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("wanted the parameters of a sweep's cell, found `{}`: {}",
                                parameters.substr(0, 80), error.what()));
  }
}

int64_t checkpoint_begin(int64_t block) {
  if (block <= 0) return 0;
  const int64_t octave = (block - 1) / 4;
  if (octave >= 62 - kFirstOctave) return std::numeric_limits<int64_t>::max();
  return kQuarters[static_cast<size_t>((block - 1) % 4)] << octave;
}

int64_t checkpoint_block(int64_t guess) {
  if (guess < kQuarters[0]) return 0;
  const int64_t octave = std::bit_width(static_cast<uint64_t>(guess)) - 1 - kFirstOctave;
  int64_t block = 1 + 4 * octave;
  while (checkpoint_begin(block + 1) <= guess) ++block;
  return block;
}

std::string SweepPlan::name() const {
  std::vector<std::string> all;
  for (const PlannedCell& cell : cells) all.push_back(cell.parameters());
  std::sort(all.begin(), all.end());
  Sha256 hash;
  hash.update(workload);
  for (const std::string& one : all) {
    hash.update("\n");
    hash.update(one);
  }
  return fmt::format("{}-{}", label, hash.hex().substr(0, 12));
}

std::vector<std::string> SweepPlan::methods() const {
  std::vector<std::string> found;
  for (const PlannedCell& planned : cells)
    if (std::find(found.begin(), found.end(), planned.cell.method) == found.end())
      found.push_back(planned.cell.method);
  return found;
}

}  // namespace convoy::sweep
