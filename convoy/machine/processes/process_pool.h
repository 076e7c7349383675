// SPDX-License-Identifier: Apache-2.0
//
// Workers of one supervisor, processes of one kind: started, listened to, replaced, ended. Each
// leads a session of its own and dies with the supervisor. Driven by one thread.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"
#include "convoy/machine/processes/child_process.h"

namespace convoy::processes {

struct PoolOptions {
  std::vector<std::string> command;
  int64_t workers = 1;
  // By worker: variables added to this process's own environment.
  std::vector<std::map<std::string, std::string>> environment;
  std::vector<std::vector<int>> cpus;  // by worker; empty = this process's CPUs
  // Called before each start. Returns the stdin of that worker, which is closed here afterwards.
  // Empty: no stdin.
  std::function<Descriptor(size_t worker)> input = {};
  sigset_t signals;        // mask of the workers
  std::string log_folder;  // for worker-N.log; empty = no logs
};

struct ProcessDeath {
  size_t worker = 0;
  std::string name;  // process_name
  int exit_code = 0;
  int signal = 0;
  bool timed_out = false;  // kill() was called for it
  std::string stderr_tail;
};

struct ProcessNews {
  struct Line {
    size_t worker = 0;
    std::string text;
  };
  std::vector<Line> output;
  std::vector<Line> errors;  // lines of stderr
  std::vector<ProcessDeath> deaths;
};

// The error in the last line of one of our workers, which prints its reason there as every command
// does.
std::optional<Error> own_error(const ProcessDeath& death);

class ProcessPool {
 public:
  explicit ProcessPool(PoolOptions options);
  ~ProcessPool();  // kills what is left. Blocks until it is gone
  ProcessPool(const ProcessPool&) = delete;
  ProcessPool& operator=(const ProcessPool&) = delete;

  // Starts workers that do not run and are not retired, at most `most` workers in all. Throws
  // ConfigError, IoError.
  void start_missing(int64_t most);
  void start(size_t worker);  // starts a worker that does not run. Throws as start_missing()
  bool runs(size_t worker) const { return workers_[worker].has_value(); }
  // Waits at most `limit` for news, or for `other` to become readable.
  ProcessNews wait(std::chrono::milliseconds limit, int other);
  void tell_stop();  // SIGTERM
  void kill_all();
  void kill(size_t worker);     // the worker counts as timed out
  void replace(size_t worker);  // kills it although its work is not at fault
  void retire(size_t worker);   // the worker is not started again
  int64_t running() const;
  std::vector<pid_t> pids() const;
  std::vector<std::string> names() const;  // names of running workers
  // Running workers, not yet killed for a timeout, that have written nothing to their stdout for
  // this long.
  std::vector<size_t> silent_for(std::chrono::duration<double> limit) const;
  // Workers that a signal stopped, and that gave no sign of life for this long.
  std::vector<size_t> stopped_for(std::chrono::duration<double> limit) const;

 private:
  struct Worker {
    ChildProcess process;
    std::string name;
    std::string output;  // the line that has not ended yet
    std::string errors;  // the line of stderr that has not ended yet
    std::string stderr_tail;
    std::chrono::steady_clock::time_point last_sign;
    bool timed_out = false;
  };

  void read_output(size_t number, ProcessNews& news);
  void read_errors(size_t number, ProcessNews& news);
  void reap(size_t number, ProcessNews& news);

  PoolOptions options_;
  std::vector<std::optional<Worker>> workers_;
  std::vector<bool> retired_;
};

}  // namespace convoy::processes
