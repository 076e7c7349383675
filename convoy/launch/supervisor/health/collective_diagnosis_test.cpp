// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/collective_diagnosis.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/launch/supervisor/health/flight_text.h"
#include "files/mutated_texts.h"

namespace convoy::launch {
namespace {

using telemetry::CollectiveRecord;
using telemetry::CollectiveState;
using telemetry::RankFlight;

constexpr int64_t kSecond = 1'000'000;

CollectiveRecord record(const std::string& operation, int64_t sequence, int64_t entered_us_ago) {
  CollectiveRecord made;
  made.group = "dp";
  made.operation = operation;
  made.sequence = sequence;
  made.entered_us_ago = entered_us_ago;
  made.group_size = 4;
  if (operation == "barrier") return made;
  made.dtype = operation == "broadcast" ? "int64" : "float32";
  made.num_elements = operation == "broadcast" ? 8 : 1 << 20;
  made.bytes = operation == "broadcast" ? 64 : 4 << 20;
  made.num_dims = 1;
  made.shape[0] = made.num_elements;
  return made;
}

CollectiveRecord done(CollectiveRecord made) {
  made.state = CollectiveState::Done;
  made.left_us_ago = made.entered_us_ago;
  return made;
}

CollectiveRecord waited(CollectiveRecord made) {
  made.state = CollectiveState::Waited;
  made.waited_us_ago = made.entered_us_ago;
  return made;
}

CollectiveRecord failed(CollectiveRecord made, int64_t left_us_ago) {
  made = waited(made);
  made.state = CollectiveState::Failed;
  made.left_us_ago = left_us_ago;
  return made;
}

RankFlight flight(int rank, std::vector<CollectiveRecord> records) {
  RankFlight made;
  made.rank = rank;
  made.pid = 100 + rank;
  made.step = 17;
  made.phase = "data";
  made.num_collectives = static_cast<int64_t>(records.size());
  made.records = std::move(records);
  return made;
}

// Four ranks of which the third did not enter #2070.
std::vector<RankFlight> one_missing() {
  std::vector<RankFlight> flights;
  for (const int rank : {3, 1, 0})
    flights.push_back(flight(rank, {done(record("broadcast", 2069, 13 * kSecond)),
                                    waited(record("all_reduce", 2070, 12'400'000 - rank * 100'000)),
                                    record("all_reduce", 2071, 12 * kSecond)}));
  flights.push_back(flight(2, {done(record("broadcast", 2069, 12'900'000))}));
  return flights;
}

TEST(LastWords, WhatFollowsAStepBelongsToIt) {
  telemetry::RankFlight flight;
  EXPECT_EQ(step_of(flight), -1);
  flight.step = 8;
  for (const auto& [phase, step] : std::map<std::string, int64_t>{
           {"forward", 9}, {"", 9}, {"evaluate", 8}, {"save", 8}, {"export", 8}}) {
    flight.phase = phase;
    EXPECT_EQ(step_of(flight), step) << phase;
  }
}

TEST(CollectiveDiagnosis, NamesTheRankThatNeverEntered) {
  const CollectiveDiagnosis diagnosis = diagnose_collectives(one_missing());
  EXPECT_EQ(diagnosis.kind, DiagnosisKind::Missing);
  EXPECT_EQ(diagnosis.ranks, std::vector<int>{2});
  EXPECT_EQ(diagnosis.group, "dp");
  EXPECT_EQ(diagnosis.operation, "all_reduce");
  EXPECT_EQ(diagnosis.sequence, 2070);
  EXPECT_EQ(
      diagnosis.text,
      "rank 2 never entered all_reduce #2070 on group dp (float32, 1,048,576 elements, 4.0 "
      "MiB); ranks 0, 1 and 3 have waited in it for 12.4 s; rank 2's last: broadcast #2069 on "
      "group dp, done 12.9 s ago, in phase 'data' of step 18");
  const auto json = nlohmann::json::parse(diagnosis_json(diagnosis));
  EXPECT_EQ(json["kind"], "missing");
  EXPECT_EQ(json["ranks"], nlohmann::json({2}));
  EXPECT_EQ(json["sequence"], 2070);
}

TEST(CollectiveDiagnosis, PeersThatFailedWaitedToo) {
  std::vector<RankFlight> flights;
  for (const int rank : {0, 1}) {
    flights.push_back(flight(rank, {failed(record("all_reduce", 5, 9 * kSecond), kSecond)}));
    flights.back().ended = true;
  }
  flights.push_back(flight(2, {}));
  CollectiveDiagnosis diagnosis = diagnose_collectives(flights);
  EXPECT_EQ(diagnosis.kind, DiagnosisKind::Missing);
  EXPECT_EQ(diagnosis.ranks, std::vector<int>{2});
  EXPECT_NE(diagnosis.text.find("ranks 0 and 1 failed in it after 8.0 s"), std::string::npos)
      << diagnosis.text;
  EXPECT_NE(diagnosis.text.find("rank 2's last: no collective at all"), std::string::npos);
  flights[2].pid = 0;
  EXPECT_NE(diagnose_collectives(flights).text.find("rank 2 has no record"), std::string::npos);
}

TEST(CollectiveDiagnosis, RankThatEndedEarlyIsNamedSo) {
  std::vector<RankFlight> flights = one_missing();
  flights[3].ended = true;
  const CollectiveDiagnosis diagnosis = diagnose_collectives(flights);
  EXPECT_EQ(diagnosis.kind, DiagnosisKind::EndedEarly);
  EXPECT_EQ(diagnosis.ranks, std::vector<int>{2});
  EXPECT_TRUE(diagnosis.text.starts_with("rank 2 ended and never entered all_reduce #2070"))
      << diagnosis.text;
}

TEST(CollectiveDiagnosis, DifferentOperationsAtOneNumber) {
  std::vector<RankFlight> flights = one_missing();
  flights[3].records.push_back(waited(record("broadcast", 2070, 3 * kSecond)));
  const CollectiveDiagnosis diagnosis = diagnose_collectives(flights);
  EXPECT_EQ(diagnosis.kind, DiagnosisKind::Differs);
  EXPECT_EQ(diagnosis.ranks, std::vector<int>{2});
  EXPECT_EQ(diagnosis.operation, "all_reduce");
  EXPECT_EQ(diagnosis.sequence, 2070);
  EXPECT_TRUE(diagnosis.text.starts_with(
      "ranks disagree about #2070 on group dp: rank 2 entered broadcast (int64, 8 elements, 64 B), "
      "ranks 0, 1 and 3 entered all_reduce (float32, 1,048,576 elements, 4.0 MiB)"))
      << diagnosis.text;
}

TEST(CollectiveDiagnosis, SkippedCollectiveIsNamed) {
  // Rank 1 skipped barrier #5. Its all_reduce #5 is all_reduce #6 of ranks 0 and 2, which have
  // entered it.
  std::vector<RankFlight> flights;
  for (const int rank : {0, 2})
    flights.push_back(flight(
        rank, {waited(record("barrier", 5, 4 * kSecond)), record("all_reduce", 6, 3 * kSecond)}));
  flights.push_back(flight(1, {waited(record("all_reduce", 5, 3 * kSecond))}));
  const CollectiveDiagnosis diagnosis = diagnose_collectives(flights);
  EXPECT_EQ(diagnosis.kind, DiagnosisKind::Differs);
  EXPECT_EQ(diagnosis.ranks, std::vector<int>{1});
  EXPECT_NE(diagnosis.text.find("rank 1 never entered barrier #5 on group dp"), std::string::npos)
      << diagnosis.text;
}

TEST(CollectiveDiagnosis, DifferentSizesCountWhereTheyBlock) {
  const auto with_sizes = [](bool blocked) {
    std::vector<RankFlight> flights;
    for (const int rank : {0, 1}) {
      CollectiveRecord made = record("all_reduce", 9, kSecond);
      made.num_elements = 100 + rank;
      flights.push_back(flight(rank, {blocked ? waited(made) : done(made)}));
    }
    return diagnose_collectives(flights);
  };
  EXPECT_EQ(with_sizes(true).kind, DiagnosisKind::Differs);
  EXPECT_NE(with_sizes(true).text.find("101 elements"), std::string::npos);
  EXPECT_EQ(with_sizes(false).kind, DiagnosisKind::AllIdle);
}

TEST(CollectiveDiagnosis, GroupsInAnotherOrder) {
  const auto on = [](const std::string& group, CollectiveRecord made) {
    made.group = group;
    made.group_size = 2;
    return made;
  };
  const CollectiveDiagnosis diagnosis =
      diagnose_collectives({flight(0, {done(on("tp", record("barrier", 0, 9 * kSecond))),
                                       waited(on("dp", record("all_reduce", 1, 5 * kSecond)))}),
                            flight(1, {done(on("dp", record("barrier", 0, 9 * kSecond))),
                                       waited(on("tp", record("all_reduce", 1, 4 * kSecond)))})});
  EXPECT_EQ(diagnosis.kind, DiagnosisKind::Crossed);
  EXPECT_EQ(diagnosis.ranks, (std::vector<int>{0, 1}));
  EXPECT_NE(diagnosis.text.find("rank 0 in all_reduce #1 on group dp"), std::string::npos)
      << diagnosis.text;
  EXPECT_NE(diagnosis.text.find("for rank 1, rank 1 in all_reduce #1 on group tp"),
            std::string::npos);
}

TEST(CollectiveDiagnosis, WaitIsFollowedToItsStart) {
  // Rank 0 waits for rank 1 in group "a", rank 1 waits for rank 2 in group "b", and rank 2
  // computes.
  const auto on = [](const std::string& group, int64_t sequence, int64_t us) {
    CollectiveRecord made = record("barrier", sequence, us);
    made.group = group;
    made.group_size = 2;
    return made;
  };
  const CollectiveDiagnosis diagnosis = diagnose_collectives(
      {flight(0, {done(on("a", 0, 9 * kSecond)), waited(on("a", 1, 8 * kSecond))}),
       flight(1, {done(on("a", 0, 9 * kSecond)), done(on("b", 0, 9 * kSecond)),
                  waited(on("b", 1, 5 * kSecond))}),
       flight(2, {done(on("b", 0, 9 * kSecond))})});
  EXPECT_EQ(diagnosis.kind, DiagnosisKind::Missing);
  EXPECT_EQ(diagnosis.ranks, std::vector<int>{2});
  EXPECT_EQ(diagnosis.group, "b");
}

TEST(CollectiveDiagnosis, AllInsideNamesNobody) {
  std::vector<RankFlight> flights;
  for (int rank = 0; rank < 4; ++rank)
    flights.push_back(flight(rank, {waited(record("all_reduce", 5, kSecond))}));
  CollectiveDiagnosis diagnosis = diagnose_collectives(flights);
  EXPECT_EQ(diagnosis.kind, DiagnosisKind::AllInside);
  EXPECT_TRUE(diagnosis.ranks.empty());
  EXPECT_EQ(diagnosis.sequence, 5);
  EXPECT_TRUE(diagnosis.text.starts_with("every rank had entered")) << diagnosis.text;
  flights.resize(2);  // ranks 2 and 3 run on another host
  diagnosis = diagnose_collectives(flights);
  EXPECT_EQ(diagnosis.kind, DiagnosisKind::AllInside);
  EXPECT_TRUE(diagnosis.text.starts_with("every rank with a record")) << diagnosis.text;
  EXPECT_TRUE(diagnosis.text.ends_with("is on another host")) << diagnosis.text;
}

TEST(CollectiveDiagnosis, NobodyWaits) {
  const CollectiveDiagnosis diagnosis = diagnose_collectives(
      {flight(0, {done(record("barrier", 7, 3 * kSecond))}),
       flight(1, {done(record("barrier", 7, 2 * kSecond)), record("all_reduce", 8, kSecond)})});
  EXPECT_EQ(diagnosis.kind, DiagnosisKind::AllIdle);
  EXPECT_EQ(diagnosis.text,
            "no rank waits in a collective; the last was barrier #7 on group dp, "
            "done 2.0 s ago");
}

TEST(CollectiveDiagnosis, NothingRecordedSaysNothing) {
  for (const auto& flights : {std::vector<RankFlight>{}, {flight(0, {}), flight(1, {})}}) {
    EXPECT_EQ(diagnose_collectives(flights).kind, DiagnosisKind::NothingRecorded);
    EXPECT_EQ(diagnose_collectives(flights).text, "");
    EXPECT_EQ(diagnosis_json(diagnose_collectives(flights)), "");
  }
}

// Ranks write the records and other hosts send them, so they may say anything.
TEST(CollectiveDiagnosis, IsGivenWhateverTheRecordsSay) {
  std::vector<RankFlight> flights = one_missing();
  std::vector<std::string> whole;
  for (const RankFlight& one : flights) whole.push_back(telemetry::flight_json(one));
  testing::MutatedTexts texts(whole);
  size_t num_read = 0;
  for (int round = 0; round < 6000; ++round) {
    try {
      flights[num_read % flights.size()] = telemetry::parse_flight_json(texts.next());
    } catch (const DataError&) {
      continue;
    }
    ++num_read;
    blame_text(diagnose_collectives(flights));
  }
  EXPECT_GT(num_read, 200U);
}

TEST(CollectiveDiagnosis, BlameSaysNothingWhereNobodyWaits) {
  EXPECT_NE(blame_text(diagnose_collectives(one_missing())), "");
  const CollectiveDiagnosis idle =
      diagnose_collectives({flight(0, {done(record("barrier", 0, kSecond))})});
  EXPECT_EQ(idle.kind, DiagnosisKind::AllIdle);
  EXPECT_EQ(blame_text(idle), "");
}

TEST(CollectiveDiagnosis, SixtyFourRanks) {
  std::vector<RankFlight> flights;
  for (int rank = 0; rank < 64; ++rank) {
    flights.push_back(flight(rank, {}));
    for (int64_t sequence = 0; sequence < 1024; ++sequence) {
      CollectiveRecord made = done(record("all_reduce", sequence, kSecond));
      made.group_size = 64;
      if (sequence == 1023 && rank == 40) continue;
      flights.back().records.push_back(sequence == 1023 ? waited(made) : made);
    }
  }
  const CollectiveDiagnosis diagnosis = diagnose_collectives(flights);
  EXPECT_EQ(diagnosis.ranks, std::vector<int>{40});
  EXPECT_NE(diagnosis.text.find("ranks 0-39 and 41-63 have waited"), std::string::npos)
      << diagnosis.text;
}

TEST(FlightText, RankLists) {
  EXPECT_EQ(rank_list({2}), "rank 2");
  EXPECT_EQ(rank_list({1, 0}), "ranks 0 and 1");
  EXPECT_EQ(rank_list({5, 0, 1, 2}), "ranks 0-2 and 5");
}

}  // namespace
}  // namespace convoy::launch
