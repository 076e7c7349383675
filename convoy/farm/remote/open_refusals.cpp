// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/open_refusals.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace convoy::remote {
namespace {

// This many refusals with no answer after them are taken as refusals of every text.
constexpr size_t kManyRefusals = 8;
// This many texts that were refused while no text was answered are taken as refusals of every text,
// even after earlier answers.
constexpr int kMostEndedInARow = 200;

}  // namespace

void OpenRefusals::add(Refusal refusal, bool stands_first) {
  std::vector<Refusal>& group = groups_[refusal.settings];
  group.insert(stands_first ? group.begin() : group.end(), std::move(refusal));
}

void OpenRefusals::withdraw(int64_t number) {
  for (auto& [settings, group] : groups_)
    std::erase_if(group, [number](const Refusal& one) { return one.number == number; });
  std::erase_if(groups_, [](const auto& group) { return group.second.empty(); });
}

bool OpenRefusals::are_many() const {
  size_t count = 0;
  for (const auto& [settings, group] : groups_) count += group.size();
  return count >= kManyRefusals;
}

std::vector<Refusal> OpenRefusals::explained_by_answer(const std::string& settings) {
  ended_in_a_row_ = 0;
  answered_.insert(settings);
  auto group = groups_.extract(settings);
  return group ? std::move(group.mapped()) : std::vector<Refusal>();
}

Refusal OpenRefusals::take_first() {
  std::vector<Refusal>& group = groups_.begin()->second;
  Refusal first = std::move(group.front());
  group.erase(group.begin());
  if (group.empty()) groups_.erase(groups_.begin());
  return first;
}

std::vector<Refusal> OpenRefusals::take_alike(const std::string& settings, AnswerSense sense) {
  const auto found = groups_.find(settings);
  if (found == groups_.end()) return {};
  std::vector<Refusal>& group = found->second;
  const auto first = std::stable_partition(group.begin(), group.end(), [&](const Refusal& one) {
    return sense_of(one.answer) != sense;
  });
  std::vector<Refusal> alike(std::make_move_iterator(first), std::make_move_iterator(group.end()));
  group.erase(first, group.end());
  if (group.empty()) groups_.erase(found);
  return alike;
}

bool OpenRefusals::concerns_every_text(const Refusal& refusal) {
  const AnswerSense sense = sense_of(refusal.answer);
  if (sense == AnswerSense::OfKey || ended_in_a_row_ >= kMostEndedInARow) return true;
  if (sense == AnswerSense::OfAddress ? !answered_.empty() : is_answered(refusal.settings))
    return false;
  if (!was_answered_ && ask_was_answered_) was_answered_ = ask_was_answered_();
  return !was_answered_;
}

}  // namespace convoy::remote
