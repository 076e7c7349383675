// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "convoy/data/answers/equivalence.h"
#include "convoy/farm/process/stages/stage.h"

namespace convoy::process {
namespace {

using Json = nlohmann::ordered_json;

// Names of the members of the stage's result.
constexpr const char* kName = "vote";
constexpr const char* kClasses =
    "classes";  // class by candidate; equal answers share one, -1 = no answer
constexpr const char* kVotes = "votes";    // number of candidates in the winner's class
constexpr const char* kVoters = "voters";  // number of candidates with an answer

// The class of each candidate. A candidate without an answer has no class and no vote.
std::vector<int> classes_of(const std::vector<Candidate>& candidates) {
  std::vector<std::string> texts;
  std::vector<size_t> owners;
  for (size_t number = 0; number < candidates.size(); ++number) {
    const Version& version = candidates[number].best();
    if (version.finish == TextFinish::Error || !version.answer) continue;
    texts.push_back(*version.answer);
    owners.push_back(number);
  }
  const std::vector<int> found = answers::equivalence_classes(texts);
  std::vector<int> classes(candidates.size(), -1);
  for (size_t at = 0; at < owners.size(); ++at) classes[owners[at]] = found[at];
  return classes;
}

double score_of(const Candidate& candidate) { return candidate.best().score().value_or(-1); }

void vote(const StageInputs&, RowState& row) {
  const std::vector<int> classes = classes_of(row.candidates);
  int64_t votes = 0;
  int64_t voters = 0;
  struct Tally {
    int64_t votes = 0;
    double scores = 0;
    size_t best = 0;  // index of the candidate
  };
  std::map<int, Tally> tallies;
  for (size_t number = 0; number < row.candidates.size(); ++number) {
    if (classes[number] < 0) continue;
    ++voters;
    const auto [entry, is_new] = tallies.try_emplace(classes[number], Tally{.best = number});
    Tally& tally = entry->second;
    ++tally.votes;
    tally.scores += row.candidates[number].best().score().value_or(0);
    if (!is_new && score_of(row.candidates[number]) > score_of(row.candidates[tally.best]))
      tally.best = number;
  }
  if (!tallies.empty()) {
    // Among equal votes the class with the better score wins, then the class that came first.
    const auto winner =
        std::max_element(tallies.begin(), tallies.end(), [](const auto& left, const auto& right) {
          if (left.second.votes != right.second.votes)
            return left.second.votes < right.second.votes;
          return left.second.scores < right.second.scores;
        });
    votes = winner->second.votes;
    row.chosen = winner->second.best;
  }
  row.results[kName] = {{kClasses, classes}, {kVotes, votes}, {kVoters, voters}};
}

Json votes_column(const RowState& row) {
  const Json* const result = row.result(kName);
  if (result == nullptr) return nullptr;
  return {{"votes", result->at(kVotes)},
          {"voters", result->at(kVoters)},
          {"samples", row.candidates.size()}};
}

Json share_column(const RowState& row) {
  const Json* const result = row.result(kName);
  if (result == nullptr || row.candidates.empty()) return nullptr;
  return result->at(kVotes).get<double>() / static_cast<double>(row.candidates.size());
}

Json class_column(const RowState& row, const Candidate& candidate) {
  const Json* const result = row.result(kName);
  if (result == nullptr) return nullptr;
  return result->at(kClasses).at(static_cast<size_t>(candidate.number));
}

Json votes_figure(const RowState& row, const Version* /*version*/) {
  const Json* const result = row.result(kName);
  return result == nullptr ? Json(nullptr) : result->at(kVotes);
}

Json share_figure(const RowState& row, const Version* /*version*/) { return share_column(row); }

}  // namespace

Stage vote_stage() {
  return {.name = kName,
          .summary = "chooses the answer that most samples agree on",
          .of_row = vote,
          .columns = {{"votes", votes_column}, {"vote_share", share_column}},
          .candidate_columns = {{"class", class_column}},
          .figures = {{"votes", {}, votes_figure}, {"vote_share", {}, share_figure}}};
}

}  // namespace convoy::process
