// SPDX-License-Identifier: Apache-2.0
//
// Runs whose rows and texts lie in the store.
#include "convoy/farm/process/ledger/row_records.h"

#include "convoy/core/base/error.h"
#include "convoy/farm/process/ledger/ledger_fixture_test.h"

namespace convoy::process {
namespace {

class TextsInStore : public LedgerTest {
 protected:
  TextsInStore() { texts_in_store_ = true; }

  // A node that has neither the folder nor the data set.
  RunIdentity of_another_node(double temperature = 0.6) const {
    RunIdentity run = request(0, temperature).run;
    run.folder = folder_ / "elsewhere";
    run.data_hash.clear();
    return run;
  }
  RowRun join(const RunIdentity& run) {
    return wait_for_plan(
        *store_, run, std::chrono::milliseconds(0), [] { return true; }, Log());
  }
  // Works until `texts` texts are finished.
  RowWorkerFigures work_a_while(int64_t texts) {
    NoopEngine engine({.batch = 8, .min_tokens = 1, .max_tokens = 9});
    RowWorkerOptions some = options("first");
    some.keep_within = std::chrono::milliseconds(0);
    some.stop_wanted = [&] { return engine.figures().decode_tokens >= 5 * texts; };
    return work(some, engine);
  }
  void expect_refused(const std::function<void()>& planning, const std::string& words) {
    try {
      planning();
      FAIL() << "wanted an error";
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
};

TEST_F(TextsInStore, ARunNeedsNoFolder) {
  plan(40);
  EXPECT_TRUE(run_.texts_in_store);
  EXPECT_EQ(work(options()).rows, 40);
  EXPECT_EQ(output(), expected_output(40));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(TextsInStore, FinishedTextsAreReadBackAndNotMadeAgain) {
  plan(40);
  const RowWorkerFigures first = work_a_while(60);
  ASSERT_LT(first.rows, 40);
  const RowWorkerFigures second = work(options("second"));
  EXPECT_GT(second.texts_read_back, 0);
  EXPECT_EQ(first.rows + second.rows, 40);
  EXPECT_EQ(output(), expected_output(40));
}

TEST_F(TextsInStore, ANodeJoinsWithoutTheDataSetAndWithoutTheFolder) {
  plan(40);
  const RowRun joined = join(of_another_node());
  EXPECT_EQ(joined.group, run_.group);
  EXPECT_EQ(joined.rows, 40);
  EXPECT_TRUE(joined.texts_in_store);
  NoopEngine engine({.batch = 8, .min_tokens = 1, .max_tokens = 9});
  EXPECT_EQ(run_row_worker(options("far"), joined, program_, engine, *store_).rows, 40);
  EXPECT_EQ(output(), expected_output(40));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "elsewhere"));
}

TEST_F(TextsInStore, ANodeJoinsTheSelectionThatWasBegunLast) {
  PlanRequest all = request(9);
  all.run.configuration["data"] = {{"schema", "x"}, {"num_examples", "all"}};
  PlanRequest few = request(3);
  few.run.configuration["data"] = {{"schema", "x"}, {"num_examples", 3}};
  few.keep_apart = true;
  plan_rows(*store_, all);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the store counts milliseconds
  plan_rows(*store_, few);
  RunIdentity other = of_another_node();
  other.configuration["data"] = {{"schema", "x"}};
  EXPECT_EQ(join(other).rows, 3);
  other.configuration["data"] = {{"schema", "y"}};
  expect_refused([&] { join(other); }, "schema");
}

TEST_F(TextsInStore, ANodeOfAnotherNameIsToldTheNamesThatAreThere) {
  plan(4);
  RunIdentity other = of_another_node();
  other.name = "else.json";
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(wait_for_plan(
                   *store_, other, std::chrono::seconds(5), [] { return false; }, Log()),
               StopRequest);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("the store has 'out.json': all nodes need the same --run-name or --output"),
            std::string::npos)
      << said;
}

TEST_F(TextsInStore, ANodeWithOtherSettingsIsRefused) {
  plan(4);
  expect_refused([&] { join(of_another_node(0.9)); }, "temperature");
}

TEST_F(TextsInStore, APlanningThatWasKilledGoesOn) {
  PlanRequest torn = request(23);
  torn.expected_cost = [](const InputRow& row) -> int64_t {
    if (row.index == 17) throw IoError("killed");
    return 0;
  };
  EXPECT_THROW(plan_rows(*store_, torn), IoError);
  plan(23);
  EXPECT_EQ(store_->counts(run_.group).all(), 23);
  work(options());
  EXPECT_EQ(output(), expected_output(23));
}

TEST_F(TextsInStore, ARunStaysWhereItWasBegun) {
  plan(4);
  texts_in_store_ = false;
  expect_refused([&] { plan(4); }, "its texts are in the store: --texts-in-store");
}

TEST_F(TextsInStore, ARunOfAFolderStaysThere) {
  texts_in_store_ = false;
  plan(4);
  texts_in_store_ = true;
  expect_refused([&] { plan(4); }, "its texts are in its run folder");
}

TEST_F(TextsInStore, ARowThatFailedIsPublishedAsItWasRead) {
  plan(3);
  const std::vector<jobs::Lease> leases =
      store_->claim({.group = run_.group, .owner = "w", .max_ranges = 1});
  ASSERT_EQ(leases.size(), 1u);
  const jobs::RangeFailure failure{.lease = leases[0], .failure = {.message = "it crashed"}};
  store_->fail({&failure, 1}, 1);
  work(options());
  const int64_t failed = PlannedRow::parse(leases[0].parameters).index;
  int64_t seen = 0;
  for_each_finished(*store_, run_, [&](PublishedRow& row) {
    if (row.stored.index != failed) return;
    ++seen;
    ASSERT_TRUE(row.input);
    EXPECT_EQ(row.input->value, numbered_row(failed).value);
    EXPECT_EQ(row.failure, "it crashed");
  });
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace convoy::process
