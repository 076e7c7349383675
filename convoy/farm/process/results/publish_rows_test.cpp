// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/publish_rows.h"

#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/farm/process/ledger/ledger_fixture_test.h"

namespace convoy::process {
namespace {

TEST(OutputFiles, AListOfJsonHasACsvFileBesideItPackedAlike) {
  using Files = std::vector<std::filesystem::path>;
  const auto files = [](const char* path, bool csv) {
    return output_files({.path = path, .csv = csv});
  };
  EXPECT_EQ(files("out/a.b.json", true), (Files{"out/a.b.json", "out/a.b.csv"}));
  EXPECT_EQ(files("a.json.gz", true), (Files{"a.json.gz", "a.csv.gz"}));
  EXPECT_EQ(files("a.json.zst", true), (Files{"a.json.zst", "a.csv.zst"}));
  EXPECT_EQ(files("a.json.gz", false), (Files{"a.json.gz"}));
  EXPECT_EQ(files("a.jsonl.gz", true), (Files{"a.jsonl.gz"}));
}

class PublishRows : public LedgerTest {
 protected:
  // Takes one row at a time and lets its worker go down with it.
  void fail_all() {
    for (;;) {
      const auto leases = store_->claim(
          {.group = run_.group, .owner = "w", .max_ranges = 8, .lease = std::chrono::hours(1)});
      if (leases.empty()) return;
      std::vector<jobs::RangeFailure> failures;
      for (const jobs::Lease& lease : leases)
        failures.push_back({.lease = lease, .failure = {.kind = "crash", .message = "went down"}});
      store_->fail(failures, 1);
    }
  }
};

TEST_F(PublishRows, ARowThatTookItsWorkersDownKeepsItsProblemAndReference) {
  PlanRequest wanted = request(1);
  wanted.rows = [asked = false]() mutable -> std::optional<SourceRow> {
    if (std::exchange(asked, true)) return std::nullopt;
    return SourceRow{.value = {{"question", "1 + 1?"}, {"answer", "#### 2"}, {"cost", 1}}};
  };
  run_ = plan_rows(*store_, wanted);
  fail_all();
  settings::ProcessSettings settings;
  settings.output.path = (folder_ / "out.jsonl").string();
  const PipelinePlan wanted_plan(settings, {{"generate", "{{ problem }}"},
                                            {"evaluate", "{{ reasoning }}"},
                                            {"improve", "{{ feedback }}"}});
  const Publication done = publish_rows(*store_, run_, wanted_plan);
  EXPECT_TRUE(done.report.all_failed());
  const auto row = data::open_rows(settings.output.path)->next();
  ASSERT_TRUE(row);
  EXPECT_EQ(row->value["state"], "engine_error");
  EXPECT_EQ(row->value["problem"], "1 + 1?");
  EXPECT_EQ(row->value["gold"], "2");
  EXPECT_EQ(row->value["metadata"]["error"], "went down");
}

// Rows whose workers died, and rows whose engine gave no text.
TEST_F(PublishRows, RowsThatFailedAreComputedAgain) {
  plan(12);
  NoopEngine broken({.batch = 8,
                     .min_tokens = 1,
                     .max_tokens = 9,
                     .error_of = [](const TextRequest& request) -> std::string {
                       return request.draw.row < 4 ? "no room" : "";
                     }});
  EXPECT_FALSE(has_answered_rows(*store_, run_));
  work(options("broken"), broken);
  EXPECT_TRUE(has_answered_rows(*store_, run_));
  EXPECT_EQ(reopen_engine_errors(*store_, run_), 4);
  EXPECT_EQ(work(options("sound")).rows, 4);
  EXPECT_EQ(reopen_engine_errors(*store_, run_), 0);
  EXPECT_EQ(output(), expected_output(12));
}

TEST_F(PublishRows, RowsThatTookTheirWorkersDownAreComputedAgain) {
  plan(5);
  fail_all();
  EXPECT_FALSE(has_answered_rows(*store_, run_));
  EXPECT_EQ(reopen_engine_errors(*store_, run_), 5);
  EXPECT_EQ(work(options()).rows, 5);
  EXPECT_EQ(output(), expected_output(5));
}

class TimedEngine : public NoopEngine {
 public:
  using NoopEngine::NoopEngine;
  EngineFigures figures() const override {
    EngineFigures figures = NoopEngine::figures();
    figures.prefill_seconds = 30;
    figures.decode_seconds = 10;
    return figures;
  }
};

TEST_F(PublishRows, TheEnginesTimeIsSharedOutByStage) {
  plan(10);
  RowWorkerFigures last;
  RowWorkerOptions told = options();
  told.tell = [&](const RowWorkerFigures& figures, const EngineFigures&) { last = figures; };
  TimedEngine engine({.batch = 8, .min_tokens = 60, .max_tokens = 60});
  work(told, engine);
  ASSERT_EQ(last.seconds_by_stage.size(), 2u);
  EXPECT_NEAR(last.seconds_by_stage["generate"] + last.seconds_by_stage["judge"], 40, 1e-6);
  // Both stages make as many new tokens, but judges also read the text that they judge.
  EXPECT_GT(last.seconds_by_stage["generate"], 5);
  EXPECT_GT(last.seconds_by_stage["judge"], 30);
}

}  // namespace
}  // namespace convoy::process
