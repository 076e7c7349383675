// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/rejection/rejection_rounds.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

using testing::TemporaryFolder;

RoundRecord round(int64_t number, int64_t right, int64_t kept = 5) {
  RoundRecord record{.round = number};
  if (number > 0) {
    record.generated = {.problems = 10, .solved = 4, .samples = 80, .right_samples = 9};
    record.kept = {.distinct = kept + 1, .kept = kept};
  }
  if (number == 0 || kept > 0)
    record.evaluated = process::AnswerCounts{.problems = 10, .solved = right};
  record.seconds = {{"evaluate", 2.5}};
  return record;
}

TEST(RejectionRounds, AreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "rounds.jsonl";
  EXPECT_TRUE(read_rounds(file).empty());
  const std::vector<RoundRecord> rounds = {round(0, 3), round(1, 5), round(2, 0, 0)};
  write_rounds(file, rounds);
  EXPECT_EQ(rounds_json(read_rounds(file)), rounds_json(rounds));
  EXPECT_FALSE(read_rounds(file).back().evaluated);
  write_file_atomic(file, read_file(file) + "{\"round\":");
  EXPECT_THROW(read_rounds(file), DataError);
}

TEST(RejectionRounds, EndWhereNothingIsGained) {
  settings::RejectionSettings settings;
  settings.rounds = 3;
  const auto ended = [&](const std::vector<RoundRecord>& rounds) {
    return why_ended(rounds, settings);
  };
  EXPECT_EQ(ended({round(0, 3)}), "");
  EXPECT_EQ(ended({round(0, 3), round(1, 5)}), "");
  EXPECT_EQ(ended({round(0, 3), round(1, 5), round(2, 5)}),
            "round 2 gained nothing: 5 of 10 right (50.0 %), 5 of 10 right (50.0 %) before it");
  EXPECT_EQ(ended({round(0, 3), round(1, 5), round(2, 4)}),
            "round 2 gained nothing: 4 of 10 right (40.0 %), 5 of 10 right (50.0 %) before it");
  EXPECT_EQ(ended({round(0, 3), round(1, 5), round(2, 6), round(3, 7)}),
            "rejection.rounds=3 are done");
  EXPECT_EQ(ended({round(0, 3), round(1, 0, 0)}),
            "round 1 kept nothing: none of 80 samples is right");
  EXPECT_EQ(ended({round(0, 10)}), "10 of 10 right (100.0 %): no round can gain more");
}

TEST(RejectionRounds, EndAtTheGainThatIsAskedFor) {
  const std::vector<RoundRecord> rounds = {round(0, 3), round(1, 4)};
  const auto gain = [](double least) {
    settings::RejectionSettings settings;
    settings.min_gain = least;
    return settings;
  };
  EXPECT_EQ(why_ended(rounds, gain(0.05)), "");
  EXPECT_NE(why_ended(rounds, gain(0.2)).find("less than rejection.min_gain"), std::string::npos);
  EXPECT_EQ(why_ended({round(0, 3), round(1, 1)}, gain(-1)), "") << "all rounds run";
  ASSERT_LT(0.6 - 0.5, 0.1);
  EXPECT_EQ(why_ended({round(0, 5), round(1, 6)}, gain(0.1)), "") << "exactly what is asked for";
}

TEST(RejectionRounds, TheBestIsTheFirstOfEqualOnes) {
  EXPECT_EQ(best_round({round(0, 9)}), nullptr);
  const std::vector<RoundRecord> rounds = {round(0, 9), round(1, 5), round(2, 7), round(3, 7)};
  EXPECT_EQ(best_round(rounds)->round, 2);
}

TEST(RejectionRounds, WorkIsCountedWithoutTheTimeBetweenStarts) {
  const TemporaryFolder folder;
  const std::filesystem::path events = folder / "events.jsonl";
  write_file_atomic(events,
                    "{\"event\":\"start\",\"time\":10.0,\"resume_step\":-1}\n"
                    "{\"event\":\"step\",\"time\":13.0,\"step\":1}\n"
                    "{\"event\":\"start\",\"time\":100.0,\"resume_step\":1}\n"
                    "{\"event\":\"step\",\"time\":104.5,\"step\":2}\n"
                    "{\"event\":\"note\"}\n"
                    "{\"event\":\"end\",\"time\":105.0,\"status\":\"finished\"}\n");
  EXPECT_DOUBLE_EQ(worked_seconds(events), 8);
}

}  // namespace
}  // namespace convoy::apps
