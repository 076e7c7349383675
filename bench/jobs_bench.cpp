// SPDX-License-Identifier: Apache-2.0
//
// The job store under load: no-op tasks through two worker processes, and a store of many finished tasks opened again.
//   jobs_bench STORE [TASKS]     STORE: a path that does not exist yet, or postgresql://... of an empty database
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>

#include "convoy/core/jobs/job_store.h"

namespace {

using namespace convoy::jobs;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::vector<NewTask> make_tasks(int64_t count) {
  std::vector<NewTask> tasks;
  for (int64_t index = 0; index < count; ++index)
    tasks.push_back(
        {.parameters = fmt::format(
             R"({{"eps_train":1e-05,"method":"gnc","seed":{},"sequence_length":5,"student_dim":{},"teacher_rank":1}})",
             index / 7, 150 + 25 * (index % 7))});
  return tasks;
}

void work(const std::string& url, int64_t group, int number, int64_t batch) {
  const std::unique_ptr<JobStore> store = open_store(url);
  for (;;) {
    const std::vector<Lease> leases = store->claim(
        {.group = group, .owner = fmt::format("worker {}", number), .max_ranges = batch});
    if (leases.empty()) return;
    std::vector<Completion> done;
    for (const Lease& lease : leases)
      done.push_back({.lease = lease,
                      .payload = "",
                      .result = Result{.payload = R"({"value":0.58366,"accepted":2226654})"}});
    store->complete(done, {});
  }
}

// Tasks per second through two processes.
double run_workers(const std::string& url, int64_t group, int64_t tasks, int64_t batch) {
  const Stopwatch watch;
  pid_t workers[2];
  for (int number = 0; number < 2; ++number) {
    workers[number] = ::fork();
    if (workers[number] != 0) continue;
    try {
      work(url, group, number, batch);
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  for (const pid_t worker : workers) ::waitpid(worker, nullptr, 0);
  return static_cast<double>(tasks) / watch.seconds();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string url = argv[1];
  const int64_t num_tasks = argc > 2 ? std::atoll(argv[2]) : 100'000;
  const std::vector<NewTask> tasks = make_tasks(num_tasks);
  for (const int64_t batch : {int64_t{1}, int64_t{10}, int64_t{100}}) {
    const std::string version = fmt::format("batch {}", batch);
    // Calls of few tasks wait for the disk: some of them will do.
    const int64_t count = batch == 100 ? num_tasks : std::min<int64_t>(num_tasks, 5'000);
    const auto part = std::span(tasks).first(static_cast<size_t>(count));
    int64_t group = 0;
    Stopwatch add;
    {
      const std::unique_ptr<JobStore> store = open_store(url);
      group = store->register_group("bench", "no-op", version).group.number;
      store->add(group, part);
    }
    fmt::print("add {} tasks: {:.2f} s\n", part.size(), add.seconds());
    const double rate = run_workers(url, group, static_cast<int64_t>(part.size()), batch);
    fmt::print("2 workers, {} per call: {:.0f} tasks/s, {:.3f} ms per task\n", batch, rate,
               1e3 / rate);
  }
  const Stopwatch total;
  const std::unique_ptr<JobStore> store = open_store(url);
  const int64_t group = store->register_group("bench", "no-op", "batch 100").group.number;
  fmt::print("open: {:.3f} s\n", total.seconds());
  const Counts counts = store->counts(group);
  const size_t nothing = store->claim({.group = group, .owner = "bench"}).size();
  fmt::print("open, count {} done, claim {}: {:.3f} s\n", counts.done, nothing, total.seconds());
  const int64_t added = store->add(group, tasks);
  fmt::print("... and add all again ({} new): {:.3f} s\n", added, total.seconds());
  const Stopwatch listing;
  int64_t listed = 0;
  store->for_each_task(group, [&](const TaskRecord& task) { listed += task.result ? 1 : 0; });
  fmt::print("list {} results, verified: {:.3f} s\n", listed, listing.seconds());
  return 0;
}
