// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/planned_cell.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string_view>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/utf8.h"
#include "convoy/farm/sweep/results/summary.h"

namespace convoy::sweep {
namespace {

constexpr std::string_view kCellKey = "{\"cell\":";
constexpr int kFirstOctave = 16;
constexpr size_t kNamedDigits = 12;  // digits of the digest in a sweep's name
// 2^16 * 2^(k / 4) for k = 0 .. 3, rounded.
constexpr std::array<int64_t, 4> kQuarters = {65536, 77936, 92682, 110218};

// The end of the object of the cell's own parameters. This object is most of the text and is kept
// unchanged. npos: the text was not written by parameters().
size_t cell_end(std::string_view parameters) {
  if (!parameters.starts_with(kCellKey)) return std::string::npos;
  const size_t close = closing_brace(parameters, kCellKey.size());
  return parameters.substr(std::min(close, parameters.size())).starts_with("},")
             ? close + 1
             : std::string::npos;
}

// Reads a rest such as `,"guesses":1,"method":"gnc","seed":0}`, so that a million cells need no
// JSON parser. False: the rest holds more.
bool read_plain_rest(std::string_view rest, PlannedCell& planned) {
  const auto number = [&](std::string_view key, int64_t& value) {
    if (!rest.starts_with(key)) return false;
    const char* const begin = rest.data() + key.size();
    const auto [end, status] = std::from_chars(begin, rest.data() + rest.size(), value);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return status == std::errc();
  };
  constexpr std::string_view kMethod = ",\"method\":\"";
  int64_t guesses = 0, seed = 0;
  number(",\"guesses\":", guesses);
  if (!rest.starts_with(kMethod)) return false;
  rest.remove_prefix(kMethod.size());
  const size_t close = rest.find_first_of("\"\\");
  if (close == std::string_view::npos || rest[close] != '"') return false;
  const std::string_view method = rest.substr(0, close);
  rest.remove_prefix(close + 1);
  if (!number(",\"seed\":", seed) || rest != "}") return false;
  planned.cell.method = method;
  planned.cell.seed = seed;
  planned.guesses = guesses;
  planned.stop = {};
  return true;
}

}  // namespace

bool StopRule::met(const Tally& tally) const {
  if (accepted > 0 && tally.accepted - tally.non_finite >= accepted) return true;
  const double found = tally.standard_error();
  // The error of a mean of a few values may be 0 by accident.
  return standard_error > 0 && tally.accepted >= 30 && std::isfinite(found) &&
         found <= standard_error;
}

// The text is the one that nlohmann writes, with sorted keys: `cell.parameters` is canonical
// already.
std::string PlannedCell::parameters() const {
  std::string text(kCellKey);
  text += cell.parameters.str();
  append_rest(text);
  return text;
}

void PlannedCell::append_rest(std::string& text) const {
  const bool plain = std::all_of(cell.method.begin(), cell.method.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || letter == '_';
  });
  if (guesses > 0) text.append(",\"guesses\":").append(std::to_string(guesses));
  text.append(",\"method\":");
  if (plain)
    text.append("\"").append(cell.method).append("\"");
  else
    text.append(nlohmann::json(cell.method).dump());
  text.append(",\"seed\":").append(std::to_string(cell.seed));
  if (stop.accepted > 0) text.append(",\"target_accepted\":").append(std::to_string(stop.accepted));
  if (stop.standard_error > 0)
    text.append(",\"target_standard_error\":").append(nlohmann::json(stop.standard_error).dump());
  text.append("}");
}

jobs::NewTask PlannedCell::task() const {
  return {.parameters = parameters(), .units = std::max<int64_t>(guesses, 1), .priority = priority};
}

bool PlannedCell::is_whole(const Tally& tally) const {
  if (tally.guesses == guesses) return true;
  return stop.any() && tally.guesses > 0 && tally.guesses < guesses &&
         tally.guesses == checkpoint_begin(checkpoint_block(tally.guesses)) && stop.met(tally);
}

PlannedCell PlannedCell::parse(const std::string& parameters) {
  return PlannedCellReader().read(parameters);
}

const PlannedCell& PlannedCellReader::read(const std::string& parameters) {
  try {
    const std::string& last = planned_.cell.parameters;
    const std::string_view rest =
        std::string_view(parameters).substr(std::min(parameters.size(), kCellKey.size()));
    // If the text begins with the complete object of the last cell, its object is the same.
    const bool same = parameters.starts_with(kCellKey) && rest.starts_with(last) &&
                      rest.size() > last.size() && rest[last.size()] == ',';
    const size_t end = same ? kCellKey.size() + last.size() : cell_end(parameters);
    nlohmann::json object;
    if (end != std::string::npos) {
      if (!same) planned_.cell.parameters = shared(rest.substr(0, end - kCellKey.size()));
      if (read_plain_rest(std::string_view(parameters).substr(end), planned_)) return planned_;
      object = nlohmann::json::parse("{" + parameters.substr(end + 1));
    } else {
      object = nlohmann::json::parse(parameters);
      planned_.cell.parameters = shared(object.at("cell").dump());
    }
    object.at("method").get_to(planned_.cell.method);
    object.at("seed").get_to(planned_.cell.seed);
    planned_.guesses = object.value("guesses", int64_t{0});
    planned_.stop.accepted = object.value("target_accepted", int64_t{0});
    planned_.stop.standard_error = object.value("target_standard_error", 0.0);
    return planned_;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("wanted the parameters of a sweep's cell, found `{}`: {}",
                                parameters.substr(0, 80), error.what()),
                    {.hint = "`convoy sweep recover --store STORE` saves the readable results"});
  }
}

const SharedText& PlannedCellReader::shared(std::string_view text) {
  constexpr size_t kMost = 1 << 16;
  if (known_.size() >= kMost) known_.clear();
  const auto [known, added] = known_.try_emplace(std::string(text));
  if (added) known->second = SharedText(known->first);
  return known->second;
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

void check_cell_count(double num_cells) {
  constexpr double kMost = 10'000'000;
  if (!(num_cells <= kMost))
    throw ConfigError(fmt::format("wanted {:.0f} cells at most, found {:.0f}", kMost, num_cells),
                      {.hint = "give fewer values or seeds"});
}

void check_distinct(const std::vector<int64_t>& values, const std::string& key) {
  std::vector<int64_t> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (!values.empty() && twice == sorted.end()) return;
  throw ConfigError(fmt::format("{}: wanted at least one value, and none twice, found {}", key,
                                values.empty() ? "none" : fmt::format("{} twice", *twice)),
                    {.key = key});
}

int64_t num_chosen_seeds(const std::vector<int64_t>& named, int64_t num_seeds) {
  return named.empty() ? num_seeds : static_cast<int64_t>(named.size());
}

std::vector<int64_t> chosen_seeds(const std::vector<int64_t>& named, int64_t num_seeds) {
  if (!named.empty()) {
    check_distinct(named, "seeds");
    return named;
  }
  std::vector<int64_t> seeds(static_cast<size_t>(num_seeds));
  std::iota(seeds.begin(), seeds.end(), 0);
  return seeds;
}

// A sum of hashes, so that the order of the cells does not matter and a million cells need no
// sorting.
std::string SweepPlan::digest() const {
  std::array<uint64_t, 4> sum{};
  // Neighbouring cells mostly begin alike, so their common beginning is hashed only once.
  const Cell* last = nullptr;
  Sha256 begun;
  std::string rest;
  for (const PlannedCell& planned : cells) {
    if (last == nullptr || !last->parameters.shares(planned.cell.parameters)) {
      begun = Sha256();
      begun.update(kCellKey);
      begun.update(planned.cell.parameters.str());
    }
    last = &planned.cell;
    rest.clear();
    planned.append_rest(rest);
    Sha256 hash = begun;
    hash.update(rest);
    const auto digest = hash.digest();
    for (size_t word = 0; word < sum.size(); ++word) {
      uint64_t part = 0;
      std::memcpy(&part, digest.data() + word * sizeof(part), sizeof(part));
      sum[word] += part;
    }
  }
  Sha256 hash;
  hash.update(workload);
  hash.update(std::as_bytes(std::span(sum)));
  return hash.hex();
}

void check_sweep_name(const std::string& name) {
  constexpr size_t kMostBytes = 128;
  const bool has_control = std::any_of(name.begin(), name.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
  });
  const std::string unseen = unseen_letter(name);
  const std::string why = name.empty() ? "it is empty"
                          : name.size() > kMostBytes
                              ? fmt::format("it has {} bytes, {} at most", name.size(), kMostBytes)
                          : name.starts_with('.')       ? "it begins with a point"
                          : name.find('/') != name.npos ? "it has a slash"
                          : has_control                 ? "it has a control character"
                          : find_invalid_utf8(name)     ? "it is no UTF-8"
                          : !unseen.empty() ? fmt::format("it has {}, which is not seen", unseen)
                                            : "";
  if (why.empty()) return;
  throw ConfigError(fmt::format("the sweep cannot be named `{}`: {}",
                                escaped_line(name.substr(0, kMostBytes)), why),
                    {.key = "name", .hint = "its tables and files begin with the name"});
}

std::string SweepPlan::name_of(const std::string& digest) const {
  return fmt::format("{}-{}", label, digest.substr(0, kNamedDigits));
}

std::string SweepPlan::file_mark() const {
  return digest().substr(0, kNamedDigits) + (mode == "fast" ? "-fast" : "");
}

std::vector<std::string> SweepPlan::methods() const {
  std::vector<std::string> found;
  for (const PlannedCell& planned : cells)
    if (std::find(found.begin(), found.end(), planned.cell.method) == found.end())
      found.push_back(planned.cell.method);
  return found;
}

}  // namespace convoy::sweep
