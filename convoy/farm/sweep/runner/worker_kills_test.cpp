// SPDX-License-Identifier: Apache-2.0
//
// A killed worker loses only the range that it was computing, and no range that it finished before.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "convoy/farm/sweep/runner/cell_worker.h"
#include "convoy/farm/sweep/runner/counting_workload_test.h"
#include "convoy/farm/sweep/runner/sweep_store.h"
#include "convoy/farm/workers/worker_supervisor.h"
#include "convoy/machine/processes/process_name.h"
#include "files/temporary_folder.h"

namespace convoy::sweep {
namespace {

// The work that a worker has done since it last stored results. The memory is shared, so it
// survives a killed worker.
struct Diary {
  std::atomic<int64_t> computed{0};  // guesses of all workers so far
  std::atomic<int64_t> guesses{0};
  std::atomic<int64_t> finished{0};  // guesses in finished ranges, without the present range
};

class SharedDiary {
 public:
  SharedDiary()
      : memory_(::mmap(nullptr, sizeof(Diary), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0)),
        diary_(new (memory_) Diary) {}
  ~SharedDiary() { ::munmap(memory_, sizeof(Diary)); }
  SharedDiary(const SharedDiary&) = delete;
  SharedDiary& operator=(const SharedDiary&) = delete;
  Diary* operator->() const { return diary_; }

 private:
  void* memory_;
  Diary* diary_;
};

// A guess is a sleep of 10 us, so ranges are long and the test needs no processor time.
class SlowExperiment : public CountingExperiment {
 public:
  using CountingExperiment::CountingExperiment;
  Tally run(uint64_t first, uint64_t count) const override {
    std::this_thread::sleep_for(std::chrono::microseconds(10 * count));
    return CountingExperiment::run(first, count);
  }
  double expected_rate() const override { return 1e5; }
};

class SlowWorkload : public CountingWorkload {
 public:
  std::unique_ptr<GuessExperiment> guesses(const Cell& cell) const override {
    return std::make_unique<SlowExperiment>(cell.seed, ~uint64_t{0});
  }
};

void work(const std::string& path, int64_t group, const SharedDiary& diary) {
  const auto store = jobs::open_store(path);
  WorkerOptions options;
  options.name = processes::process_name(::getpid());
  options.groups = {{group, 1}};
  options.first_range_guesses = 10'000;
  options.stop_wanted = [] { return false; };
  options.tell = [&](const WorkerMessage& message) {
    if (message.kind == WorkerMessage::Kind::Begin) diary->finished = diary->guesses.load();
    if (message.kind == WorkerMessage::Kind::Computed) {
      diary->computed += message.guesses;
      diary->guesses += message.guesses;
    }
    if (message.kind == WorkerMessage::Kind::Stored) diary->guesses = diary->finished = 0;
  };
  run_worker(options, SlowWorkload(), *store);
}

TEST(SweepWorkerKills, CostOneRangeEach) {
  const testing::TemporaryFolder folder;
  const std::string path = (folder / "sweep.db").string();
  constexpr int64_t kGuesses = 150'000;
  SweepPlan plan{.label = "test", .workload = "counting", .mode = "", .version = "1", .cells = {}};
  for (const int64_t seed : {1, 2}) {
    PlannedCell planned;
    planned.cell = {.method = "gnc", .seed = seed, .parameters = "{}"};
    planned.guesses = kGuesses;
    plan.cells.push_back(planned);
  }
  const int64_t group = store_plan(*jobs::open_store(path), plan).groups.at(0).number;
  const SharedDiary diary;
  std::mt19937 random(7);
  int64_t lost = 0;
  int kills = 0;
  for (bool finished = false; !finished;) {
    const pid_t worker = ::fork();
    if (worker == 0) {
      work(path, group, diary);
      ::_exit(0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 600));
    int status = 0;
    finished = ::waitpid(worker, &status, WNOHANG) == worker;
    if (!finished) {
      ::kill(worker, SIGKILL);
      ::waitpid(worker, &status, 0);
      ++kills;
    }
    // Finished ranges are stored together every 50 ms.
    EXPECT_LE(diary->finished, 5'000);
    lost += diary->guesses;
    diary->guesses = diary->finished = 0;
    const auto store = jobs::open_store(path);
    workers::release_gone_owners(*store, {&group, 1});
  }
  EXPECT_GE(kills, 3);
  EXPECT_LE(diary->computed - 2 * kGuesses, lost);
  const auto store = jobs::open_store(path);
  const SweepResults results = read_results(
      *store, stored_sweep(*store, find_sweeps(*store, "").back()), CountingWorkload());
  for (const CellResult& cell : results.cells)
    EXPECT_EQ(cell.tally, CountingWorkload().guesses(cell.cell)->run(0, kGuesses));
}

}  // namespace
}  // namespace convoy::sweep
