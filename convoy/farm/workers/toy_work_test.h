// SPDX-License-Identifier: Apache-2.0
//
// Work for tests of workers: the task {"number":n} has the result n * n. Also has a store whose
// server is unreachable at times.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"
#include "convoy/core/jobs/sql/sql_store.h"
#include "convoy/core/jobs/sqlite/sqlite_session.h"
#include "convoy/farm/workers/worker.h"

namespace convoy::workers {

// Adds the tasks 0 to count - 1 to the store. Returns the number of their group.
inline int64_t add_toy_tasks(jobs::JobStore& store, int64_t count) {
  const int64_t group = store.register_group("toy", "squares", "1").group.number;
  std::vector<jobs::NewTask> tasks;
  for (int64_t number = 0; number < count; ++number)
    tasks.push_back({.parameters = nlohmann::json({{"number", number}}).dump()});
  store.add(group, tasks);
  return group;
}

inline int64_t toy_number(const std::string& parameters) {
  return nlohmann::json::parse(parameters).at("number");
}

// Returns the number of tasks with the right result.
inline int64_t count_squares(jobs::JobStore& store, int64_t group) {
  int64_t right = 0;
  store.for_each_task(group, [&](const jobs::TaskRecord& task) {
    const int64_t number = toy_number(task.parameters);
    right += task.result && task.result->payload == std::to_string(number * number) ? 1 : 0;
  });
  return right;
}

// Claims one task at a time.
class ToySource : public WorkSource {
 public:
  ToySource(jobs::JobStore& store, int64_t group, std::string name)
      : store_(store), group_(group), name_(std::move(name)) {}

  bool claim() override {
    if (leases_.empty()) leases_ = store_.claim({.group = group_, .owner = name_, .lease = lease});
    return !leases_.empty();
  }
  void compute() override {
    if (begin) begin(leases_[0]);
    computed_ = !unfinished;
  }
  void complete(bool last) override {
    ended = last;
    if (leases_.empty() || !computed_) return;
    const int64_t number = toy_number(leases_[0].parameters);
    const jobs::Completion done{.lease = leases_[0],
                                .payload = "",
                                .result = jobs::Result{.payload = std::to_string(number * number)}};
    num_counted += store_.complete({&done, 1}, {})[0].counted ? 1 : 0;
    leases_.clear();
    computed_ = false;
  }
  void idle() override { ++num_idle; }
  std::vector<jobs::Lease> held() const override { return leases_; }
  void lose(const jobs::Lease& /*lease*/) override {
    ++num_lost;
    leases_.clear();
  }

  std::function<void(const jobs::Lease&)> begin;
  std::chrono::milliseconds lease{60'000};
  bool unfinished = false;  // compute() never finishes a task
  bool ended = false;
  int64_t num_counted = 0, num_idle = 0, num_lost = 0;

 private:
  jobs::JobStore& store_;
  int64_t group_;
  std::string name_;
  std::vector<jobs::Lease> leases_;
  bool computed_ = false;
};

// A session whose server is unreachable during the next `outages` transactions.
class LeavingServer : public jobs::SqliteSession {
 public:
  LeavingServer(const std::string& path, int& outages)
      : SqliteSession(path, {}), outages_(outages) {}
  void begin(jobs::Begin kind) override {
    if (outages_ > 0) {
      --outages_;
      throw jobs::RetryTransaction("the server is away");
    }
    SqliteSession::begin(kind);
  }

 private:
  int& outages_;
};

// Opens a file that holds a store already.
inline std::unique_ptr<jobs::JobStore> open_leaving_server(const std::string& path, int& outages,
                                                           const jobs::StoreOptions& options) {
  return std::make_unique<jobs::SqlStore>(std::make_unique<LeavingServer>(path, outages),
                                          options.server_limit, options.keep_waiting);
}

}  // namespace convoy::workers
