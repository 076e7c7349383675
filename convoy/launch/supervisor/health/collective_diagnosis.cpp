// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/collective_diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "convoy/launch/supervisor/health/flight_text.h"

namespace convoy::launch {
namespace {

using telemetry::CollectiveRecord;
using telemetry::CollectiveState;
using telemetry::RankFlight;

using Records = std::map<int64_t, const CollectiveRecord*>;  // by sequence
using Signature = std::tuple<std::string, std::string, int64_t>;

Signature signature(const CollectiveRecord& record) {
  return {record.operation, record.dtype, record.num_elements};
}

// A rank that is blocked, or was when it failed, in a collective that some ranks have not entered.
struct Wait {
  const RankFlight* waiter = nullptr;
  const CollectiveRecord* record = nullptr;
  std::vector<const RankFlight*> missing;
};

class Judge {
 public:
  explicit Judge(const std::vector<RankFlight>& flights);
  CollectiveDiagnosis diagnosis() const;

 private:
  const CollectiveRecord* find(const RankFlight& flight, const std::string& group,
                               int64_t sequence) const;
  bool is_member(const RankFlight& flight, const CollectiveRecord& record) const;
  bool has_entered(const RankFlight& flight, const CollectiveRecord& record) const;
  std::optional<Wait> wait_of(const RankFlight& flight) const;
  std::optional<CollectiveDiagnosis> disagreement() const;
  CollectiveDiagnosis disagreement_at(const std::string& group, int64_t sequence) const;
  std::string skip_hint(const std::string& group, int64_t sequence, const std::vector<int>& few,
                        const std::vector<int>& many) const;
  CollectiveDiagnosis blame(const std::vector<Wait>& waits) const;
  CollectiveDiagnosis missing(const Wait& wait,
                              const std::vector<const RankFlight*>& culprits) const;
  CollectiveDiagnosis crossed(const std::vector<const Wait*>& circle) const;
  CollectiveDiagnosis all_inside(const Wait& wait) const;
  CollectiveDiagnosis all_idle() const;
  std::string waiters_words(const CollectiveRecord& record) const;

  std::vector<const RankFlight*> flights_;                 // by rank
  std::map<int, std::map<std::string, Records>> records_;  // by rank, group, sequence
  std::set<std::string> groups_;
};

Judge::Judge(const std::vector<RankFlight>& flights) {
  for (const RankFlight& flight : flights) {
    flights_.push_back(&flight);
    for (const CollectiveRecord& record : flight.records) {
      records_[flight.rank][record.group][record.sequence] = &record;
      groups_.insert(record.group);
    }
  }
  std::sort(flights_.begin(), flights_.end(),
            [](const RankFlight* a, const RankFlight* b) { return a->rank < b->rank; });
}

const CollectiveRecord* Judge::find(const RankFlight& flight, const std::string& group,
                                    int64_t sequence) const {
  const auto of_rank = records_.find(flight.rank);
  if (of_rank == records_.end()) return nullptr;
  const auto of_group = of_rank->second.find(group);
  if (of_group == of_rank->second.end()) return nullptr;
  const auto found = of_group->second.find(sequence);
  return found == of_group->second.end() ? nullptr : found->second;
}

// Records do not list members: a rank that has used the group is one, and so is every rank when the
// group is as large as the job.
bool Judge::is_member(const RankFlight& flight, const CollectiveRecord& record) const {
  if (static_cast<size_t>(record.group_size) >= flights_.size()) return true;
  const auto of_rank = records_.find(flight.rank);
  return of_rank != records_.end() && of_rank->second.count(record.group) > 0;
}

bool Judge::has_entered(const RankFlight& flight, const CollectiveRecord& record) const {
  const auto of_rank = records_.find(flight.rank);
  if (of_rank == records_.end()) return false;
  const auto of_group = of_rank->second.find(record.group);
  return of_group != of_rank->second.end() && of_group->second.rbegin()->first >= record.sequence;
}

// The oldest collective that `flight` blocks in, or failed in.
std::optional<Wait> Judge::wait_of(const RankFlight& flight) const {
  const CollectiveRecord* oldest = nullptr;
  for (const CollectiveRecord& record : flight.records) {
    const bool blocks = record.state == CollectiveState::Waited ||
                        (record.state == CollectiveState::Failed && record.waited_us_ago >= 0);
    if (blocks && (oldest == nullptr || record.waited_us_ago > oldest->waited_us_ago))
      oldest = &record;
  }
  if (oldest == nullptr) return std::nullopt;
  Wait wait{&flight, oldest, {}};
  for (const RankFlight* other : flights_)
    if (other != &flight && is_member(*other, *oldest) && !has_entered(*other, *oldest))
      wait.missing.push_back(other);
  return wait;
}

CollectiveDiagnosis Judge::diagnosis() const {
  if (records_.empty()) return {};
  if (auto found = disagreement()) return *found;
  std::vector<Wait> waits;
  for (const RankFlight* flight : flights_)
    if (auto wait = wait_of(*flight)) waits.push_back(std::move(*wait));
  if (waits.empty()) return all_idle();
  // The rank that has waited longest saw the cause first.
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
    return a.record->waited_us_ago > b.record->waited_us_ago;
  });
  return blame(waits);
}

// Finds the first sequence number of a group at which ranks entered different collectives. Some
// collectives allow different sizes, so sizes count only where a collective is not done.
std::optional<CollectiveDiagnosis> Judge::disagreement() const {
  for (const std::string& group : groups_) {
    std::map<int64_t, std::vector<const CollectiveRecord*>> entered;
    for (const auto& [rank, by_group] : records_) {
      const auto found = by_group.find(group);
      if (found == by_group.end()) continue;
      for (const auto& [sequence, record] : found->second) entered[sequence].push_back(record);
    }
    for (const auto& [sequence, records] : entered) {
      const CollectiveRecord& first = *records.front();
      bool differs = false, undone = false;
      for (const CollectiveRecord* record : records) {
        undone = undone || record->state != CollectiveState::Done;
        differs = differs || signature(*record) != signature(first);
        if (record->operation != first.operation) return disagreement_at(group, sequence);
      }
      if (differs && undone) return disagreement_at(group, sequence);
    }
  }
  return std::nullopt;
}

CollectiveDiagnosis Judge::disagreement_at(const std::string& group, int64_t sequence) const {
  std::map<Signature, std::vector<int>> camps;
  std::map<Signature, const CollectiveRecord*> samples;
  for (const RankFlight* flight : flights_) {
    const CollectiveRecord* const record = find(*flight, group, sequence);
    if (record == nullptr) continue;
    camps[signature(*record)].push_back(flight->rank);
    samples[signature(*record)] = record;
  }
  const auto largest = std::max_element(
      camps.begin(), camps.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  CollectiveDiagnosis diagnosis;
  diagnosis.kind = DiagnosisKind::Differs;
  diagnosis.group = group;
  diagnosis.sequence = sequence;
  diagnosis.operation = samples[largest->first]->operation;
  std::string others;
  for (const auto& [camp, ranks] : camps) {
    if (camp == largest->first) continue;
    diagnosis.ranks.insert(diagnosis.ranks.end(), ranks.begin(), ranks.end());
    others += fmt::format("{} entered {}{}, ", rank_list(ranks), samples[camp]->operation,
                          collective_size(*samples[camp]));
  }
  diagnosis.text = fmt::format("ranks disagree about #{} on group {}: {}{} entered {}{}", sequence,
                               group, others, rank_list(largest->second), diagnosis.operation,
                               collective_size(*samples[largest->first]));
  diagnosis.text += skip_hint(group, sequence, diagnosis.ranks, largest->second);
  std::sort(diagnosis.ranks.begin(), diagnosis.ranks.end());
  return diagnosis;
}

// Tells whether a rank skipped a collective: its sequence numbers are one behind from there on.
std::string Judge::skip_hint(const std::string& group, int64_t sequence,
                             const std::vector<int>& few, const std::vector<int>& many) const {
  const auto at = [&](int rank, int64_t number) -> const CollectiveRecord* {
    const auto flight = std::find_if(flights_.begin(), flights_.end(),
                                     [&](const RankFlight* each) { return each->rank == rank; });
    return find(**flight, group, number);
  };
  const auto skipped = [&](int rank, int other) {
    const CollectiveRecord* const own = at(rank, sequence);
    const CollectiveRecord* const next = at(other, sequence + 1);
    return next != nullptr && signature(*own) == signature(*next);
  };
  for (const auto& [ranks, others] : {std::pair(few, many), std::pair(many, few)}) {
    if (!skipped(ranks.front(), others.front())) continue;
    const CollectiveRecord* const left_out = at(others.front(), sequence);
    return fmt::format("; {} never entered {}{}; later collectives there are off by one",
                       rank_list(ranks), collective_name(*left_out), collective_size(*left_out));
  }
  return "; one side left out a collective, or has one too many, there or before";
}

// Follows the waits to a rank that does not wait itself; a path back to the start is a circle.
CollectiveDiagnosis Judge::blame(const std::vector<Wait>& waits) const {
  const auto stuck = std::find_if(waits.begin(), waits.end(),
                                  [](const Wait& wait) { return !wait.missing.empty(); });
  if (stuck == waits.end()) return all_inside(waits.front());
  std::vector<const Wait*> path = {&*stuck};
  for (;;) {
    std::vector<const RankFlight*> free;
    const Wait* next = nullptr;
    for (const RankFlight* rank : path.back()->missing) {
      const auto own = std::find_if(waits.begin(), waits.end(), [&](const Wait& wait) {
        return wait.waiter == rank && !wait.missing.empty();
      });
      if (own == waits.end())
        free.push_back(rank);
      else
        next = &*own;
    }
    if (!free.empty()) return missing(*path.back(), free);
    const auto seen = std::find(path.begin(), path.end(), next);
    if (seen != path.end()) return crossed({seen, path.end()});
    path.push_back(next);
  }
}

CollectiveDiagnosis Judge::missing(const Wait& wait,
                                   const std::vector<const RankFlight*>& culprits) const {
  CollectiveDiagnosis diagnosis;
  diagnosis.kind = DiagnosisKind::EndedEarly;
  diagnosis.group = wait.record->group;
  diagnosis.operation = wait.record->operation;
  diagnosis.sequence = wait.record->sequence;
  for (const RankFlight* culprit : culprits) {
    diagnosis.ranks.push_back(culprit->rank);
    if (!culprit->ended) diagnosis.kind = DiagnosisKind::Missing;
  }
  diagnosis.text = fmt::format(
      "{} {} {}{}; {}", rank_list(diagnosis.ranks),
      diagnosis.kind == DiagnosisKind::EndedEarly ? "ended and never entered" : "never entered",
      collective_name(*wait.record), collective_size(*wait.record), waiters_words(*wait.record));
  constexpr size_t kMostDescribed = 4;
  for (size_t index = 0; index < std::min(culprits.size(), kMostDescribed); ++index)
    diagnosis.text += culprits[index]->attached()
                          ? fmt::format("; rank {}'s last: {}", culprits[index]->rank,
                                        last_activity(*culprits[index]))
                          : fmt::format("; rank {} has no record", culprits[index]->rank);
  return diagnosis;
}

CollectiveDiagnosis Judge::crossed(const std::vector<const Wait*>& circle) const {
  CollectiveDiagnosis diagnosis;
  diagnosis.kind = DiagnosisKind::Crossed;
  diagnosis.group = circle.front()->record->group;
  diagnosis.operation = circle.front()->record->operation;
  diagnosis.sequence = circle.front()->record->sequence;
  diagnosis.text = "ranks wait for each other in different groups: ";
  for (size_t index = 0; index < circle.size(); ++index) {
    const Wait& wait = *circle[index];
    const Wait& next = *circle[(index + 1) % circle.size()];
    diagnosis.ranks.push_back(wait.waiter->rank);
    diagnosis.text += fmt::format("{}rank {} in {}{} for rank {}", index == 0 ? "" : ", ",
                                  wait.waiter->rank, collective_name(*wait.record),
                                  collective_size(*wait.record), next.waiter->rank);
  }
  diagnosis.text += "; every rank must use its groups in the same order";
  std::sort(diagnosis.ranks.begin(), diagnosis.ranks.end());
  return diagnosis;
}

CollectiveDiagnosis Judge::all_inside(const Wait& wait) const {
  CollectiveDiagnosis diagnosis;
  diagnosis.kind = DiagnosisKind::AllInside;
  diagnosis.group = wait.record->group;
  diagnosis.operation = wait.record->operation;
  diagnosis.sequence = wait.record->sequence;
  const bool has_others = static_cast<size_t>(wait.record->group_size) > flights_.size();
  diagnosis.text = fmt::format("every rank {}had entered {}{}; {}",
                               has_others ? "with a record " : "", collective_name(*wait.record),
                               collective_size(*wait.record), waiters_words(*wait.record));
  if (has_others) diagnosis.text += "; the missing rank is on another host";
  return diagnosis;
}

CollectiveDiagnosis Judge::all_idle() const {
  const CollectiveRecord* last = nullptr;
  for (const RankFlight* flight : flights_)
    for (const CollectiveRecord& record : flight->records)
      if (record.left_us_ago >= 0 && (last == nullptr || record.left_us_ago < last->left_us_ago))
        last = &record;
  CollectiveDiagnosis diagnosis;
  diagnosis.kind = DiagnosisKind::AllIdle;
  diagnosis.text = "no rank waits in a collective";
  if (last == nullptr) return diagnosis;
  diagnosis.group = last->group;
  diagnosis.operation = last->operation;
  diagnosis.sequence = last->sequence;
  diagnosis.text += fmt::format("; the last was {}, done {} ago", collective_name(*last),
                                seconds_text(last->left_us_ago));
  return diagnosis;
}

// "ranks 0, 1 and 3 have waited in it for 12.4 s".
std::string Judge::waiters_words(const CollectiveRecord& record) const {
  std::vector<int> waiting, gave_up;
  int64_t waiting_us = 0, gave_up_us = 0;
  for (const RankFlight* flight : flights_) {
    const CollectiveRecord* const own = find(*flight, record.group, record.sequence);
    if (own == nullptr || own->waited_us_ago < 0) continue;
    if (own->state == CollectiveState::Waited) {
      waiting.push_back(flight->rank);
      waiting_us = std::max(waiting_us, own->waited_us_ago);
    } else if (own->state == CollectiveState::Failed) {
      gave_up.push_back(flight->rank);
      gave_up_us = std::max(gave_up_us, own->waited_us_ago - own->left_us_ago);
    }
  }
  std::string text;
  if (!waiting.empty())
    text = fmt::format("{} {} waited in it for {}", rank_list(waiting),
                       waiting.size() == 1 ? "has" : "have", seconds_text(waiting_us));
  if (!gave_up.empty())
    text += fmt::format("{}{} failed in it after {}", text.empty() ? "" : ", ", rank_list(gave_up),
                        seconds_text(gave_up_us));
  return text;
}

}  // namespace

CollectiveDiagnosis diagnose_collectives(const std::vector<RankFlight>& flights) {
  return Judge(flights).diagnosis();
}

std::string blame_text(const CollectiveDiagnosis& diagnosis) {
  return diagnosis.kind == DiagnosisKind::AllIdle ? std::string() : diagnosis.text;
}

std::string diagnosis_json(const CollectiveDiagnosis& diagnosis) {
  if (diagnosis.kind == DiagnosisKind::NothingRecorded) return "";
  constexpr const char* kWords[] = {"nothing_recorded", "all_idle", "missing",   "ended_early",
                                    "differs",          "crossed",  "all_inside"};
  nlohmann::ordered_json json;
  json["kind"] = kWords[static_cast<size_t>(diagnosis.kind)];
  json["ranks"] = diagnosis.ranks;
  json["group"] = diagnosis.group;
  json["operation"] = diagnosis.operation;
  json["sequence"] = diagnosis.sequence;
  json["text"] = diagnosis.text;
  return json.dump();
}

}  // namespace convoy::launch
