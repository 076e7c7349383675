// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/serving/engine_choice.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "convoy/apps/serving/json_answer.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/json_text.h"

namespace convoy::serving {
namespace {

constexpr size_t kBlockBytes = 128;
constexpr size_t kMostPrefixes = 100'000;  // about 4 MB an engine
// Requests by which the engine with the prefix may be busier than the least busy one.
constexpr int64_t kBusierBy = 8;

PromptPrefixes prefixes_of(std::string_view text) {
  PromptPrefixes hashes;
  uint64_t hash = 0;
  for (; text.size() >= kBlockBytes; text.remove_prefix(kBlockBytes)) {
    const std::array<uint64_t, 2> words = {
        hash, std::hash<std::string_view>()(text.substr(0, kBlockBytes))};
    hash = mix_seed(words);
    hashes.push_back(hash);
  }
  return hashes;
}

}  // namespace

void EngineChoice::SeenPrefixes::add(uint64_t prefix) {
  if (recent.size() >= kMostPrefixes / 2) older = std::exchange(recent, {});
  recent.insert(prefix);
}

std::optional<size_t> EngineChoice::choose(const EngineLoads& loads,
                                           const PromptPrefixes& prefixes) {
  std::optional<size_t> chosen;
  for (size_t engine = 0; engine < loads.size(); ++engine)
    if (loads[engine] && (!chosen || *loads[engine] < *loads[*chosen])) chosen = engine;
  if (!chosen) return chosen;
  const int64_t most_load = *loads[*chosen] + kBusierBy;
  int64_t most_seen = std::ssize(prefixes) / 2;  // below half of the prompt a cache gains little
  for (size_t engine = 0; engine < loads.size(); ++engine) {
    if (!loads[engine] || *loads[engine] > most_load) continue;
    const auto unseen =
        std::find_if_not(prefixes.begin(), prefixes.end(),
                         [this, engine](uint64_t prefix) { return seen_[engine].has(prefix); });
    if (unseen - prefixes.begin() > most_seen) {
      most_seen = unseen - prefixes.begin();
      chosen = engine;
    }
  }
  for (const uint64_t prefix : prefixes) seen_[*chosen].add(prefix);
  return chosen;
}

void EngineChoice::forget(size_t engine) { seen_[engine] = {}; }

PromptPrefixes prompt_prefixes(std::string_view body) {
  try {
    const Json request = io::parse_json(body, "");
    if (!request.is_object()) return {};
    std::string text;
    for (const char* const field : {"model", "tools", "messages", "prompt"})
      if (const auto at = request.find(field); at != request.end()) text += dumped(*at);
    return prefixes_of(text);
  } catch (const DataError&) {  // an engine reports the error to the client
    return {};
  }
}

}  // namespace convoy::serving
