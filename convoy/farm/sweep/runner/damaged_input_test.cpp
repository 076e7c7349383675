// SPDX-License-Identifier: Apache-2.0
//
// Damaged rows of a store, answers of programs and last words of programs are read, or refused as
// one of Convoy's errors or as the failure of one cell.
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/farm/sweep/command/command_grid.h"
#include "convoy/farm/sweep/command/program_answer.h"
#include "convoy/farm/sweep/runner/cell_outcome.h"
#include "convoy/farm/sweep/runner/planned_cell.h"
#include "convoy/farm/sweep/runner/range_tally.h"
#include "convoy/farm/sweep/runner/task_failure.h"
#include "convoy/farm/sweep/runner/worker_message.h"
#include "convoy/machine/processes/process_pool.h"
#include "files/mutated_texts.h"

namespace convoy::sweep {
namespace {

using convoy::testing::count;
using convoy::testing::MutatedTexts;
using convoy::testing::Outcome;

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

Tally tally() {
  Tally tally;
  tally.guesses = 1000;
  tally.accepted = 3;
  tally.loss.add(0.5);
  tally.loss_squared.add(0.25);
  return tally;
}

TEST(MutatedRows, OfAStoreAreReadOrRefused) {
  PlannedCell planned;
  planned.cell = {.method = "gnc", .seed = 3, .parameters = SharedText("{\"student_dim\":150}")};
  planned.guesses = 1000;
  PlannedCell more = planned;
  more.cell.method = "a \"method\"";
  more.stop = {.standard_error = 0.5, .accepted = 7};
  RangeTally range;
  range.add(0, tally());
  range.add(1, tally());
  range.add_gpu("a GPU");
  const Effort effort{.microseconds = 5, .attempts = 1, .device = "a CPU"};
  MutatedTexts cells({planned.parameters(), more.parameters()}), ranges({range.text()});
  MutatedTexts results(
      {guess_result(planned, tally(), effort).payload,
       outcome_result({.value = 0.5, .train_loss = 0.25, .steps = 10}, effort).payload});
  PlannedCellReader reader;
  Outcome outcome;
  for (int round = 0; round < 2000; ++round) {
    count<Error, TaskFailure>(outcome, [&] { reader.read(cells.next()); });
    count<Error, TaskFailure>(outcome, [&] { RangeTally::parse(ranges.next()).text(); });
    jobs::TaskRecord record;
    record.result = jobs::Result{.payload = results.next()};
    for (const int64_t guesses : {0, 1000}) {
      planned.guesses = guesses;
      count<Error, TaskFailure>(outcome, [&] { cell_result(planned, record); });
    }
  }
  EXPECT_GT(outcome.read, 200);
  EXPECT_GT(outcome.refused, 500);
}

TEST(MutatedRows, AnswersAndLastWordsOfPrograms) {
  MutatedTexts answers(
      {R"({"loss": 0.5, "final": {"loss": NaN, "why": "a \"text\""}, "error": Infinity})"});
  MutatedTexts lines({"begin 1 2 3", "computed 1 2 3 4 5", "stored 1 2 3", "note words", "idle"});
  MutatedTexts words(
      {R"({"code":10,"kind":"data","rank":null,"file":"a.db","hint":"b","message":"c"})"});
  Outcome outcome;
  int told = 0;
  for (int round = 0; round < 3000; ++round) {
    count<Error, TaskFailure>(outcome, [&] {
      const auto answer = json_line(answers.next());
      if (!answer) throw DataError("no line of JSON");
      for (const std::string key : {"loss", "final.loss", "error"})
        if (const auto* const value = find_key(*answer, key)) number_of(*value, key);
    });
    WorkerMessage::parse(lines.next());
    processes::ProcessDeath death;
    death.exit_code = 10;
    death.stderr_tail = "a line\n" + words.next() + "\n";
    told += own_error(death) ? 1 : 0;
  }
  EXPECT_GT(outcome.read, 100);
  EXPECT_GT(outcome.refused, 100);
  EXPECT_GT(told, 100);
}

TEST(MutatedRows, LastWordsOfOtherTypesAreNoReasonToEnd) {
  processes::ProcessDeath death;
  death.exit_code = 10;
  death.stderr_tail = R"({"code":"10"})";
  EXPECT_FALSE(own_error(death));
  death.stderr_tail = R"({"code":10,"kind":3,"message":[],"file":{},"hint":null})";
  ASSERT_TRUE(own_error(death));
  EXPECT_EQ(static_cast<int>(own_error(death)->code()), 10);
}

// dump() and copies of a text that is nested a hundred thousand times would overflow the stack and
// end the process.
TEST(MutatedRows, NestedTextsAreRefused) {
  const std::string deep = nested(300'000);
  EXPECT_FALSE(json_line("{\"loss\": " + deep + "}"));
  EXPECT_TRUE(json_line("{\"loss\": " + nested(100) + "}"));
  EXPECT_THROW(jobs::canonical_parameters("{\"a\": " + deep + "}"), ConfigError);
}

TEST(CommandGrid, WordsThatAreNoUtf8AreRefused) {
  EXPECT_THROW(plan_command({}, {"./train", "\xff"}), ConfigError);
  EXPECT_EQ(plan_command({}, {"./train", "\xc3\xa9"}).cells.size(), 1u);
}

}  // namespace
}  // namespace convoy::sweep
