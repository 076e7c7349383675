// SPDX-License-Identifier: Apache-2.0
//
// Drives the real `convoy train` as a user, a job system or a power failure would: starts it, waits
// for rows of its events.jsonl, signals or kills it, and reads its files. Use it from one thread.
// Every process that it starts is gone when a test ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "files/temporary_folder.h"

namespace convoy::testing {

using Settings = std::vector<std::string>;  // arguments of `convoy train`, such as "train.epochs=2"

Settings operator+(Settings settings, const Settings& more);

struct Ended {
  int status = -1;     // as in a shell: 128 + n for signal n
  std::string errors;  // stderr
};

// A running `convoy train`, with its launcher, guard and ranks.
class TrainProcess {
 public:
  TrainProcess(const std::vector<std::string>& arguments, const std::filesystem::path& errors_file);
  ~TrainProcess();
  TrainProcess(const TrainProcess&) = delete;
  TrainProcess& operator=(const TrainProcess&) = delete;

  pid_t pid() const { return pid_; }
  std::vector<pid_t> ranks() const;  // the living worker processes
  bool running();
  Ended wait();                   // a run that takes minutes is killed and fails the test
  void signal(int number) const;  // to `convoy` alone
  // Sends SIGKILL to `convoy` and to all processes that it started, at nearly the same moment.
  // Returns when all of them are gone.
  void kill_everything();
  // Waits until `condition` holds. Returns false if the process ended first or a minute has passed.
  bool wait_until(const std::function<bool()>& condition);

 private:
  std::vector<pid_t> descendants() const;
  void reap_orphans();

  pid_t pid_ = -1;
  int status_ = -1;
  bool reaped_ = false;
  std::filesystem::path errors_file_;
};

// Has rows, a configuration and run folders in a new folder. The 23 rows in micro-batches of 2 x 2
// give epochs of 6 steps, the last of which has fewer rows.
class TrainFixture {
 public:
  TrainFixture();

  // Writes `count` rows for evaluation. Without this call there are 6.
  void set_validation_rows(int64_t count) const;

  // Returns the command of a run that writes to `name`: `convoy train run.yaml SETTINGS
  // --output-dir name`.
  std::vector<std::string> command(const std::string& name,
                                   const std::vector<std::string>& settings) const;
  TrainProcess start(const std::string& name, const std::vector<std::string>& settings) const;
  Ended run(const std::string& name, const std::vector<std::string>& settings) const;

  std::filesystem::path run_folder(const std::string& name) const { return folder_ / name; }
  std::filesystem::path rows() const { return folder_ / "rows.jsonl"; }
  std::filesystem::path checkpoint(const std::string& name, int64_t step) const;
  std::vector<int64_t> checkpoint_steps(const std::string& name) const;

  // Returns the losses of the steps that were not superseded, with all digits.
  std::map<int64_t, double> losses(const std::string& name) const;
  std::map<int64_t, double> evaluation_losses(const std::string& name) const;
  // Returns the present number of rows of events.jsonl with this word; repeated steps count again.
  int64_t num_events(const std::string& name, const std::string& word) const;
  bool has_event(const std::string& name, const std::string& word, int64_t step) const;
  // Returns the bytes of the exported weights, of an adapter or a model.
  std::string weights(const std::string& name) const;

 private:
  TemporaryFolder folder_;
};

// Expects the same steps with the same bits of losses, and the same bytes of exported weights.
void expect_same_result(const TrainFixture& fixture, const std::string& expected,
                        const std::string& found);

}  // namespace convoy::testing
