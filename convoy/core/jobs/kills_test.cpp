// SPDX-License-Identifier: Apache-2.0
//
// Workers are killed at random times while they claim and complete; the final table stays the same.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <random>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/jobs/job_store.h"
#include "jobs/store_under_test.h"

namespace convoy::jobs {
namespace {

using convoy::testing::StoreUnderTest;
using namespace std::chrono_literals;

constexpr int kTasksPerBatch = 6;
constexpr int kKillsPerBatch = 5;
constexpr int64_t kMaxUnits = 400;

int num_kills() {
  const char* const wanted = std::getenv("CONVOY_TEST_KILLS");
  return wanted == nullptr ? 100 : std::atoi(wanted);
}

// Returns "UNITS SUM". Both numbers are wrong as soon as one unit counts twice or never.
std::string tally_of(const Lease& lease) {
  uint64_t sum = 0;
  for (int64_t unit = lease.first; unit < lease.first + lease.count; ++unit) {
    const std::array<uint64_t, 2> words = {crc32c(lease.parameters), static_cast<uint64_t>(unit)};
    sum += mix_seed(words) >> 20;
  }
  return std::to_string(lease.count) + " " + std::to_string(sum);
}

std::string merged(const std::string& left, const std::string& right) {
  char* left_sum = nullptr;
  char* right_sum = nullptr;
  const long long units =
      std::strtoll(left.c_str(), &left_sum, 10) + std::strtoll(right.c_str(), &right_sum, 10);
  const unsigned long long sum =
      std::strtoull(left_sum, nullptr, 10) + std::strtoull(right_sum, nullptr, 10);
  return std::to_string(units) + " " + std::to_string(sum);
}

// Claims once, computes, and stores the results. Returns false if there was nothing to claim.
bool work_once(JobStore& store, int64_t group, const std::string& worker) {
  const std::vector<Lease> leases = store.claim(
      {.group = group, .owner = worker, .max_ranges = 3, .units_per_range = 17, .lease = 40ms});
  std::vector<Completion> done;
  for (const Lease& lease : leases)
    done.push_back(
        {.lease = lease,
         .payload = tally_of(lease),
         .result = lease.task_units == 1 ? std::optional(Result{.payload = "one"}) : std::nullopt});
  store.complete(done, merged);
  std::vector<Finish> finished;
  for (const TaskRecord& task : store.unfinished_complete(group)) {
    const std::vector<Part> parts = store.progress(task.number);
    // Another worker may have finished the task in between; then the store keeps the first result.
    if (parts.size() == 1)
      finished.push_back({.task = task.number, .result = {.payload = parts[0].payload}});
  }
  store.finish(finished);
  return !leases.empty();
}

[[noreturn]] void work_until_killed(const StoreUnderTest& under_test, int64_t group, int number) {
  try {
    const std::unique_ptr<JobStore> store = under_test.open();
    for (;;)
      if (!work_once(*store, group, "worker " + std::to_string(number))) ::usleep(1'000);
  } catch (const std::exception& error) {
    const std::string text = std::string("worker: ") + error.what() + "\n";
    if (::write(2, text.data(), text.size()) < 0) ::_exit(4);
    ::_exit(3);
  }
}

void add_batch(JobStore& store, int64_t group, int batch) {
  std::vector<NewTask> tasks;
  for (int index = 0; index < kTasksPerBatch; ++index)
    tasks.push_back({.parameters = canonical_parameters("{\"batch\":" + std::to_string(batch) +
                                                        ",\"seed\":" + std::to_string(index) + "}"),
                     .units = index == 0 ? 1 : kMaxUnits - 31 * index,
                     .priority = index});
  store.add(group, tasks);
}

std::string table_of(JobStore& store, int64_t group) {
  std::string text;
  store.for_each_task(group, [&](const TaskRecord& task) {
    text += task.id + " " + task.parameters + " " + (task.result ? task.result->payload : "none") +
            "\n";
  });
  return text;
}

class EachStoreKilled : public ::testing::TestWithParam<std::string> {};

TEST_P(EachStoreKilled, EndsWithTheTableOfAnUnbrokenRun) {
  const int kills = num_kills();
  const int batches = kills / kKillsPerBatch;
  std::string wanted;
  {
    const StoreUnderTest unbroken("sqlite");
    const std::unique_ptr<JobStore> store = unbroken.open();
    const int64_t group = store->register_group("sweep", "kills", "1").group.number;
    for (int batch = 0; batch < batches; ++batch) add_batch(*store, group, batch);
    while (store->counts(group).open > 0) work_once(*store, group, "alone");
    wanted = table_of(*store, group);
  }
  const StoreUnderTest under_test(GetParam());
  const int64_t group = under_test.open()->register_group("sweep", "kills", "1").group.number;
  std::mt19937_64 random(20'251);
  std::array<pid_t, 3> workers{};
  int started = 0;
  const auto start = [&](pid_t& worker) {
    worker = ::fork();
    if (worker == 0) work_until_killed(under_test, group, started);
    ++started;
  };
  for (pid_t& worker : workers) start(worker);
  int killed = 0;
  for (int batch = 0; batch < batches; ++batch) {
    add_batch(*under_test.open(), group, batch);
    for (int kill = 0; kill < kKillsPerBatch; ++kill, ++killed) {
      ::usleep(static_cast<useconds_t>(random() % 12'000));
      // About every fifth time all workers are killed at once.
      const bool all = random() % 5 == 0;
      const size_t chosen = random() % workers.size();
      for (size_t index = 0; index < workers.size(); ++index) {
        if (!all && index != chosen) continue;
        ASSERT_EQ(::kill(workers[index], SIGKILL), 0);
      }
      for (size_t index = 0; index < workers.size(); ++index) {
        if (!all && index != chosen) continue;
        int status = 0;
        ASSERT_EQ(::waitpid(workers[index], &status, 0), workers[index]);
        EXPECT_TRUE(WIFSIGNALED(status)) << "a worker ended by itself";
        start(workers[index]);
      }
    }
  }
  EXPECT_EQ(killed, kills);
  for (const pid_t worker : workers) {
    ::kill(worker, SIGKILL);
    ::waitpid(worker, nullptr, 0);
  }
  const std::unique_ptr<JobStore> store = under_test.open();
  const auto deadline = std::chrono::steady_clock::now() + 120s;
  while (store->counts(group).open > 0 && std::chrono::steady_clock::now() < deadline)
    if (!work_once(*store, group, "last")) ::usleep(1'000);
  EXPECT_EQ(table_of(*store, group), wanted);
}

INSTANTIATE_TEST_SUITE_P(Stores, EachStoreKilled, ::testing::ValuesIn(StoreUnderTest::kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace convoy::jobs
