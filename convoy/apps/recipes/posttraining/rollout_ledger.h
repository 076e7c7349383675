// SPDX-License-Identifier: Apache-2.0
//
// The rollouts of a run's steps, in files: RUN/rollouts/step-N.jsonl has the rollouts of the step
// that learnt from them first, a row each, with text, tokens, log-probabilities, rewards, advantage
// and what a server's teacher said. While a step draws, each text, each reward and each answer of a
// teacher is saved as it comes, so a run that was killed goes on without drawing a text or asking
// for one of these twice. One thread per rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/io/answer_journal.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/loop/rollouts.h"

namespace convoy::recipes {

// A rollout with its text.
struct RecordedRollout {
  train::Rollout rollout = {};
  std::string text;  // without end token and special tokens
};

class RolloutLedger {
 public:
  using Place = io::AnswerJournal::Place;  // problem, sample

  // A problem, as its rows in the file name it.
  struct ProblemFacts {
    int64_t row_number = 0;
    std::string text;
    nlohmann::ordered_json asked = {};  // the prompt before its template: messages, or a text
  };

  // `folder` need not exist. `group` outlives it.
  RolloutLedger(std::filesystem::path folder, std::vector<std::string> reward_names,
                comm::Group& group);

  // Says what makes a row of a file none of this run; empty: nothing.
  using FaultOf = std::function<std::string(const train::Rollout& rollout)>;

  // Collective. The rollouts of a finished step file on every rank; none where there is none, or
  // where it holds rollouts of another `key`. An empty key takes any: the optimizer has stepped on
  // these rollouts, so they cannot be drawn again. `wanted`: this rank's. Throws DataError with
  // file and line for a damaged file: a row that is none, whose lists disagree or that `fault_of`
  // refuses, and one that is missing.
  std::optional<std::map<Place, RecordedRollout>> finished(int64_t step, const std::string& key,
                                                           const std::vector<Place>& wanted,
                                                           const FaultOf& fault_of);

  // Opens the unfinished files of a step, with what an earlier life of the run saved in them.
  void open(int64_t step, const std::string& key);
  // Call the functions from here to finish() after open() and before finish(). Texts come without
  // rewards. `part`: the place of a reward among the names.
  const std::map<Place, RecordedRollout>& texts() const { return texts_; }
  std::optional<double> reward(const Place& place, size_t part) const;  // none: it was not saved
  void add_text(const RecordedRollout& rollout);
  void add_reward(const Place& place, size_t part, double value);
  const train::TeacherTokens* teacher(const Place& place) const;  // null: it was not saved
  void add_teacher(const Place& place, train::TeacherTokens tokens);
  // Forgets the values of a reward that this rank added, in earlier lives of the run too.
  void forget_rewards(size_t part);
  // Collective; call it after open(). Forgets the values of a reward that compares the `samples`
  // texts of a problem, where a kill left some of a problem's without the others.
  void forget_torn_rewards(size_t part, int64_t samples);

  // Collective. Writes the step's file from the rollouts of all ranks, in the order of their
  // places, and removes the unfinished files.
  void finish(int64_t step, const std::string& key, const std::vector<RecordedRollout>& own,
              const std::map<int64_t, ProblemFacts>& problems);

  std::filesystem::path file_of(int64_t step) const;

 private:
  Place place_of_reward(const Place& place, size_t part) const;
  bool is_of_part(const Place& place_of_reward, size_t part) const;
  void write_rewards_again();
  std::filesystem::path unfinished(int64_t step, const std::string& key,
                                   const std::string& kind) const;

  const std::filesystem::path folder_;
  const std::vector<std::string> reward_names_;
  comm::Group& group_;
  std::map<Place, RecordedRollout> texts_;
  std::map<Place, double> rewards_;  // by place_of_reward()
  std::map<Place, train::TeacherTokens> teacher_;
  std::unique_ptr<io::AnswerJournal> text_journal_;
  std::unique_ptr<io::AnswerJournal> reward_journal_;
  std::unique_ptr<io::AnswerJournal> teacher_journal_;
};

}  // namespace convoy::recipes
