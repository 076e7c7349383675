// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/workers/row_worker.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <map>
#include <set>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/farm/process/ledger/ledger_fixture_test.h"

namespace convoy::process {
namespace {

using namespace std::chrono_literals;

using RowWorker = LedgerTest;

// Counts the requested texts, the finished ones, and the most that were unfinished at a time.
class WatchedEngine : public NoopEngine {
 public:
  WatchedEngine() : NoopEngine({.batch = 8, .min_tokens = 1, .max_tokens = 9}) {}
  void submit(TextRequest request) override {
    ++submitted;
    most_unfinished = std::max(most_unfinished, unfinished() + 1);
    NoopEngine::submit(std::move(request));
  }
  std::vector<TextResult> step() override {
    auto results = NoopEngine::step();
    finished += static_cast<int64_t>(results.size());
    return results;
  }
  int64_t submitted = 0;
  int64_t finished = 0;
  int64_t most_unfinished = 0;
};

TEST_F(RowWorker, FinishesEveryRowAsTheProgramSays) {
  plan(137);
  const RowWorkerFigures figures = work(options());
  EXPECT_EQ(figures.rows, 137);
  EXPECT_EQ(figures.texts, 4 * 137);
  EXPECT_EQ(output(), expected_output(137));
}

TEST_F(RowWorker, HoldsNoMoreRowsThanItMay) {
  plan(200);
  WatchedEngine engine;
  RowWorkerOptions few = options();
  few.rows_in_flight = 5;
  work(few, engine);
  EXPECT_LE(engine.most_unfinished, 2 * 5);
  EXPECT_EQ(engine.submitted, 4 * 200);
}

TEST_F(RowWorker, ManyShareOneRun) {
  plan(400);
  std::vector<std::thread> threads;
  std::atomic<int64_t> rows = 0;
  for (int number = 0; number < 3; ++number)
    threads.emplace_back([&, number] {
      const auto store = open();
      NoopEngine engine({.batch = 8, .step_time = 500us, .min_tokens = 1, .max_tokens = 9});
      RowWorkerOptions mine = options("w" + std::to_string(number));
      mine.num_workers = 3;
      rows += run_row_worker(mine, run_, program_, engine, *store).rows;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rows, 400);
  EXPECT_EQ(output(), expected_output(400));
}

TEST_F(RowWorker, ToldToStopKeepsTextsAndGivesRowsBack) {
  plan(60);
  int64_t finished = 0, submitted = 0, lives = 0;
  for (;;) {
    WatchedEngine engine;
    RowWorkerOptions stopped = options("w" + std::to_string(lives++));
    stopped.stop_wanted = [&] { return engine.finished >= 25; };
    const RowWorkerFigures figures = work(stopped, engine);
    finished += engine.finished;
    submitted += engine.submitted;
    EXPECT_TRUE(store_->leases(run_.group).empty());
    if (store_->counts(run_.group).open == 0) break;
    EXPECT_GE(figures.texts, 25);
  }
  EXPECT_GT(lives, 5);
  // No text that was finished was made again.
  EXPECT_EQ(finished, 4 * 60);
  EXPECT_GT(submitted, 4 * 60);
  EXPECT_EQ(output(), expected_output(60));
}

TEST_F(RowWorker, ADeadWorkersTextsAreReadBack) {
  plan(40);
  struct Killed {};
  WatchedEngine engine;
  RowWorkerOptions killed = options("dead");
  killed.keep_within = 0ms;
  // Leaves the worker as a kill would: nothing is handed in or given back.
  killed.stop_wanted = [&]() -> bool {
    if (engine.finished >= 70) throw Killed();
    return false;
  };
  EXPECT_THROW(work(killed, engine), Killed);
  EXPECT_FALSE(store_->leases(run_.group).empty());
  store_->release("dead");
  WatchedEngine rest;
  const RowWorkerFigures figures = work(options("alive"), rest);
  EXPECT_GT(figures.texts_read_back, 0);
  EXPECT_EQ(engine.finished + rest.finished, 4 * 40);
  EXPECT_EQ(output(), expected_output(40));
}

TEST_F(RowWorker, ATextThatCanNotBeReadIsMadeAgainAndThenRead) {
  plan(10);
  struct Killed {};
  const auto killed_after = [&](const std::string& name, int64_t texts) {
    WatchedEngine engine;
    RowWorkerOptions killed = options(name);
    killed.keep_within = 0ms;
    killed.stop_wanted = [&]() -> bool {
      if (engine.finished >= texts) throw Killed();
      return false;
    };
    try {
      work(killed, engine);
    } catch (const Killed&) {
    }
    store_->release(name);
    return engine.finished;
  };
  killed_after("dead", 15);
  ASSERT_EQ(::truncate((run_.folder / "dead.seg").c_str(), 100), 0);
  const int64_t again = killed_after("next", 15);
  WatchedEngine rest;
  const RowWorkerFigures figures = work(options("alive"), rest);
  EXPECT_GT(figures.texts_read_back, 0);
  // Rows that the dead worker had finished are found by the reader.
  const FinishedPass pass = for_each_finished(*store_, run_, [](PublishedRow&) {});
  EXPECT_LE(again + rest.finished, 4 * 10);
  if (pass.reopened > 0) work(options("last"));
  EXPECT_EQ(output(), expected_output(10));
}

TEST_F(RowWorker, ADamagedRowIsFoundAndComputedAgain) {
  plan(30);
  work(options("w1"));
  const std::string segment = (run_.folder / "w1.seg").string();
  const int file = ::open(segment.c_str(), O_RDWR);
  char byte = 0;
  ASSERT_EQ(::pread(file, &byte, 1, 5'000), 1);
  byte = static_cast<char>(byte ^ 4);
  ASSERT_EQ(::pwrite(file, &byte, 1, 5'000), 1);
  ASSERT_EQ(::ftruncate(file, static_cast<off_t>(std::filesystem::file_size(segment)) - 3), 0);
  ::close(file);
  const FinishedPass pass = for_each_finished(*store_, run_, [](PublishedRow&) {});
  EXPECT_GE(pass.reopened, 1);
  EXPECT_EQ(pass.rows + pass.reopened, 30);
  EXPECT_EQ(work(options("w2")).rows, pass.reopened);
  EXPECT_EQ(output(), expected_output(30));
}

TEST_F(RowWorker, AnErrorThatMayPassIsTriedAgain) {
  plan(12);
  std::map<std::string, int> errors;
  NoopEngine engine({.batch = 8,
                     .min_tokens = 1,
                     .max_tokens = 9,
                     .error_of =
                         [&](const TextRequest& request) {
                           return ++errors[request.prompt.text + std::to_string(request.draw.row) +
                                           "." + std::to_string(request.draw.sample)] <= 2
                                      ? std::string("out of memory")
                                      : std::string();
                         },
                     .error_may_pass = true});
  EXPECT_EQ(work(options(), engine).texts, 3 * 4 * 12);
  EXPECT_EQ(output(), expected_output(12));
}

TEST_F(RowWorker, AnErrorThatDoesNotPassEndsTheRowWithItsTries) {
  plan(6);
  for (const bool may_pass : {true, false}) {
    NoopEngine engine({.error_of =
                           [](const TextRequest& request) {
                             return request.draw.row == 3 ? std::string("no such\xff thing")
                                                          : std::string();
                           },
                       .error_may_pass = may_pass});
    if (!may_pass) {
      std::vector<int64_t> all;
      store_->for_each_task(run_.group,
                            [&](const jobs::TaskRecord& task) { all.push_back(task.number); });
      store_->redo(all);
    }
    work(options(may_pass ? "w1" : "w2"), engine);
    for_each_finished(*store_, run_, [&](PublishedRow& row) {
      EXPECT_EQ(row.stored.row.state, row.stored.index == 3 ? "engine_error" : "ok");
      if (row.stored.index != 3) return;
      EXPECT_EQ(row.stored.row.value.at("tries"), may_pass ? 3 : 1);
    });
  }
}

TEST_F(RowWorker, TriesAreCountedAcrossLives) {
  plan(1);
  int64_t tries = 0;
  NoopEngineOptions failing{.error_of =
                                [&](const TextRequest&) {
                                  ++tries;
                                  return std::string("busy");
                                },
                            .error_may_pass = true};
  program_ = NoopProgram({.candidates = 1, .judges = false});
  for (int life = 0; life < 2; ++life) {
    NoopEngine engine(failing);
    RowWorkerOptions stopped = options("w" + std::to_string(life));
    stopped.stop_wanted = [&] { return tries > life; };
    work(stopped, engine);
  }
  NoopEngine engine(failing);
  work(options("last"), engine);
  EXPECT_EQ(tries, 3);
  EXPECT_EQ(reopen_engine_errors(*store_, run_), 1);
}

TEST_F(RowWorker, ALostLeaseIsNotCountedAndItsRequestsAreDropped) {
  plan(8);
  WatchedEngine engine;
  RowWorkerOptions slow = options("slow");
  slow.keep_within = 1h;
  slow.lease = 40ms;
  bool taken = false;
  slow.stop_wanted = [&] {
    if (engine.finished < 4 || taken) return false;
    taken = true;
    // The pause is longer than the lease, as if this process had been stopped.
    std::this_thread::sleep_for(100ms);
    const auto store = open();
    NoopEngine other({.batch = 8, .min_tokens = 1, .max_tokens = 9});
    EXPECT_EQ(run_row_worker(options("other"), run_, program_, other, *store).rows, 8);
    return false;
  };
  const RowWorkerFigures figures = work(slow, engine);
  EXPECT_EQ(figures.rows, 0);
  EXPECT_EQ(figures.rows_given_up, 8);
  EXPECT_EQ(engine.unfinished(), 0);
  EXPECT_EQ(output(), expected_output(8));
}

TEST_F(RowWorker, LongestRowsGoFirst) {
  plan(70);
  struct Order : NoopEngine {
    using NoopEngine::NoopEngine;
    void submit(TextRequest request) override {
      const int64_t number = std::stoll(request.prompt.text.substr(8));
      costs.push_back(number % 7);
      NoopEngine::submit(std::move(request));
    }
    std::vector<int64_t> costs;
  } engine({.batch = 8});
  program_ = NoopProgram({.candidates = 1, .judges = false});
  RowWorkerOptions few = options();
  few.rows_in_flight = 4;
  work(few, engine);
  EXPECT_TRUE(std::is_sorted(engine.costs.rbegin(), engine.costs.rend()));
  EXPECT_EQ(engine.costs.size(), 70u);
}

TEST_F(RowWorker, ASlowWorkerGetsFewerRowsAndNobodyWaitsForTheRest) {
  plan(300);
  program_ = NoopProgram({.candidates = 1, .judges = false});
  std::array<int64_t, 2> rows{};
  std::vector<std::thread> threads;
  for (const int number : {0, 1})
    threads.emplace_back([&, number] {
      const auto store = open();
      NoopEngine engine({.batch = 8,
                         .step_time = number == 0 ? 3'000us : 12'000us,
                         .min_tokens = 1,
                         .max_tokens = 9});
      RowWorkerOptions mine = options("w" + std::to_string(number));
      mine.num_workers = 2;
      mine.rows_in_flight = 8;
      rows[static_cast<size_t>(number)] = run_row_worker(mine, run_, program_, engine, *store).rows;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rows[0] + rows[1], 300);
  EXPECT_GT(2 * rows[0], 3 * rows[1]);
  EXPECT_GT(rows[1], 10);
}

TEST_F(RowWorker, RowsThatWentDownWithTwoWorkersRunAlone) {
  plan(20);
  for (int crash = 0; crash < 2; ++crash) {
    std::vector<jobs::RangeFailure> failures;
    for (const jobs::Lease& lease :
         store_->claim({.group = run_.group, .owner = "crashed", .max_ranges = 6}))
      failures.push_back({.lease = lease, .failure = {.kind = "crash"}});
    store_->fail(failures, 3);
  }
  std::set<int64_t> suspects;
  for (const jobs::Lease& lease :
       store_->claim({.group = run_.group, .owner = "looking", .max_ranges = 6}))
    suspects.insert(PlannedRow::parse(lease.parameters).source_index);
  ASSERT_EQ(suspects.size(), 6u);
  store_->release("looking");
  class Watched : public NoopEngine {
   public:
    explicit Watched(const std::set<int64_t>& suspects)
        : NoopEngine({.batch = 8}), suspects_(suspects) {}
    void submit(TextRequest request) override {
      rows_[request.number] = request.draw.row;
      std::set<int64_t> now;
      bool any_suspect = false;
      for (const auto& [number, row] : rows_) {
        now.insert(row);
        any_suspect = any_suspect || suspects_.contains(row);
      }
      EXPECT_TRUE(!any_suspect || now.size() == 1);
      most = std::max(most, now.size());
      NoopEngine::submit(std::move(request));
    }
    std::vector<TextResult> step() override {
      auto results = NoopEngine::step();
      for (const TextResult& result : results) rows_.erase(result.number);
      return results;
    }
    size_t most = 0;

   private:
    const std::set<int64_t>& suspects_;
    std::map<int64_t, int64_t> rows_;
  } engine(suspects);
  work(options(), engine);
  EXPECT_EQ(store_->counts(run_.group).done, 20);
  EXPECT_GT(engine.most, 4u);
}

}  // namespace
}  // namespace convoy::process
