// SPDX-License-Identifier: Apache-2.0
//
// Refusals of texts whose cause is not known yet: each may concern one text or every text.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "convoy/core/http/answer.h"
#include "convoy/farm/remote/server_answer.h"

namespace convoy::remote {

struct Refusal {
  int64_t number = 0;    // number of the text
  std::string settings;  // everything in the text's request except the prompt
  http::Answer answer;
};

// Refused texts that wait until an answer to another text shows what the refusal concerns. Texts
// with the same settings wait in one group, because an answer to one of them explains the others.
// One thread.
class OpenRefusals {
 public:
  // `was_answered`: as HttpEngineOptions::was_answered. It is called until it returns true.
  explicit OpenRefusals(std::function<bool()> was_answered)
      : ask_was_answered_(std::move(was_answered)) {}

  // A refusal with `stands_first` represents the other refusals of its group.
  void add(Refusal refusal, bool stands_first);
  void withdraw(int64_t number);

  bool empty() const { return groups_.empty(); }
  // True if so many texts wait that every text may be refused.
  bool are_many() const;

  // Notes an answer to a text with these settings and takes the refusals that it explains.
  std::vector<Refusal> explained_by_answer(const std::string& settings);
  // True if a text with these settings was answered.
  bool is_answered(const std::string& settings) const { return answered_.contains(settings); }

  // Takes the first refusal of the first group. Requires that a refusal waits.
  Refusal take_first();
  // Takes the refusals that wait with these settings and are of this sense.
  std::vector<Refusal> take_alike(const std::string& settings, AnswerSense sense);

  // True if the refusal is taken as a refusal of every text. Call it when no answer is left that
  // could explain the refusal. A refused key concerns every text, and so does any refusal once many
  // texts have ended in a row. Otherwise a refusal does not concern every text if an earlier answer
  // speaks against it: an answer to any text for a refused address, or an answer to a text with the
  // same settings for any other refusal.
  bool concerns_every_text(const Refusal& refusal);

  // Notes that a text ended with its refusal and that no answer explained the refusal.
  void note_end() { ++ended_in_a_row_; }
  // True if such a text has ended since the last answer.
  bool has_ended() const { return ended_in_a_row_ > 0; }

 private:
  std::function<bool()> ask_was_answered_;
  std::map<std::string, std::vector<Refusal>> groups_;  // by settings; no group is empty
  std::unordered_set<std::string> answered_;            // settings of answered texts
  bool was_answered_ = false;                           // ask_was_answered_() has returned true
  int ended_in_a_row_ = 0;                              // note_end() since the last answer
};

}  // namespace convoy::remote
