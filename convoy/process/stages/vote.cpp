// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "convoy/answers/equivalence.h"
#include "convoy/process/stages/stage.h"

namespace convoy::process {
namespace {

// The class of each sample; samples without an answer have none and no vote.
std::vector<int> classes_of(const std::vector<SampleState>& samples) {
  std::vector<std::string> texts;
  std::vector<size_t> owners;
  for (size_t number = 0; number < samples.size(); ++number) {
    const Version& version = samples[number].best();
    if (version.finish == TextFinish::Error || !version.answer) continue;
    texts.push_back(*version.answer);
    owners.push_back(number);
  }
  const std::vector<int> found = answers::equivalence_classes(texts);
  std::vector<int> classes(samples.size(), -1);
  for (size_t at = 0; at < owners.size(); ++at) classes[owners[at]] = found[at];
  return classes;
}

double score_of(const SampleState& sample) { return sample.best().score().value_or(-1); }

}  // namespace

void vote(const StageInputs&, RowState& row) {
  Vote result{.classes = classes_of(row.samples)};
  struct Tally {
    int64_t votes = 0;
    double scores = 0;
    size_t best = 0;  // sample
  };
  std::map<int, Tally> tallies;
  for (size_t number = 0; number < row.samples.size(); ++number) {
    if (result.classes[number] < 0) continue;
    ++result.voters;
    const auto [entry, is_new] = tallies.try_emplace(result.classes[number], Tally{.best = number});
    Tally& tally = entry->second;
    ++tally.votes;
    tally.scores += row.samples[number].best().score().value_or(0);
    if (!is_new && score_of(row.samples[number]) > score_of(row.samples[tally.best]))
      tally.best = number;
  }
  if (!tallies.empty()) {
    // Equal votes: the better judged class, then the one that came first.
    const auto winner =
        std::max_element(tallies.begin(), tallies.end(), [](const auto& left, const auto& right) {
          if (left.second.votes != right.second.votes)
            return left.second.votes < right.second.votes;
          return left.second.scores < right.second.scores;
        });
    result.votes = winner->second.votes;
    row.chosen = winner->second.best;
  }
  row.vote = std::move(result);
}

}  // namespace convoy::process
