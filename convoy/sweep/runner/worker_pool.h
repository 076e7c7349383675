// SPDX-License-Identifier: Apache-2.0
//
// The worker processes of one runner: started, listened to, replaced, ended. Each leads a session of its own and dies
// with the runner. Driven by one thread.
#pragma once

#include <poll.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/launch/rank_process.h"
#include "convoy/sweep/runner/worker_message.h"

namespace convoy::sweep {

struct PoolOptions {
  std::vector<std::string> command;
  int64_t workers = 1;
  std::vector<std::map<std::string, std::string>>
      environment;                     // by worker; over this process's own
  std::vector<std::vector<int>> cpus;  // by worker; empty = as this process
  sigset_t signals;                    // mask of the workers
  std::string log_folder;              // worker-N.log; empty = nowhere
};

struct WorkerDeath {
  size_t worker = 0;
  std::string name;
  int exit_code = 0;
  int signal = 0;
  bool timed_out = false;       // kill() was called for it
  std::vector<int64_t> leases;  // that it was computing
  std::string stderr_tail;
  bool worked = false;  // it had begun at least one lease
};

struct PoolNews {
  struct Message {
    size_t worker = 0;
    WorkerMessage message;
  };
  struct Line {
    size_t worker = 0;
    std::string text;  // of stderr
  };
  std::vector<Message> messages;
  std::vector<Line> lines;
  std::vector<WorkerDeath> deaths;
};

class WorkerPool {
 public:
  explicit WorkerPool(PoolOptions options);
  ~WorkerPool();  // kills what is left. Blocks until it is gone
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Starts workers where there are none, at most `most` of them in all. Throws ConfigError, IoError.
  void start_missing(int64_t most);
  // Waits at most `limit` for news, or for `other` to become readable.
  PoolNews wait(std::chrono::milliseconds limit, int other);
  void tell_stop();  // SIGTERM
  void kill_all();
  void kill(size_t worker);     // as timed out
  void replace(size_t worker);  // kills it, through no fault of what it computes
  int64_t running() const;
  std::vector<pid_t> pids() const;
  std::vector<std::string> names() const;  // of running workers
  // Workers that compute and gave no sign of life for this long.
  std::vector<size_t> silent_for(std::chrono::duration<double> limit) const;
  // Workers that a signal stopped, and that gave no sign of life for this long.
  std::vector<size_t> stopped_for(std::chrono::duration<double> limit) const;

 private:
  struct Worker {
    launch::RankProcess process;
    std::string name;
    std::string output;  // of a line not yet ended
    std::string errors;  // the same of stderr
    std::string stderr_tail;
    std::vector<int64_t> leases;
    std::chrono::steady_clock::time_point last_sign;
    bool timed_out = false;
    bool worked = false;
  };

  void read_output(size_t number, PoolNews& news);
  void read_errors(size_t number, PoolNews& news);
  void reap(size_t number, PoolNews& news);

  PoolOptions options_;
  std::vector<std::optional<Worker>> workers_;
};

}  // namespace convoy::sweep
