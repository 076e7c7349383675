// SPDX-License-Identifier: Apache-2.0
//
// The folder of one run: where its files lie, who may write them, and its identity record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace convoy::telemetry {

// What run.json says.
struct RunIdentity {
  std::string name{};
  std::string task{};                                // "sft", "pretrain", ...
  std::string config_yaml{};                         // the resolved config; becomes config.yaml
  std::string config_json{};                         // the same as JSON, for run.json
  std::map<std::string, std::string> origins{};      // key path -> where its value came from
  std::vector<std::string> hosts{};                  // one per node
  std::vector<std::string> devices{};                // one per rank
  std::map<std::string, std::string> data_hashes{};  // split or file -> SHA-256
  std::map<std::string, std::string> stamp{};        // what a resumed run must share
  int64_t world_size = 1;
  int64_t resume_step = -1;  // -1 = from the beginning
};

class RunFolder {
 public:
  // Makes the folder (or takes an existing one) and its writer lock, held until destruction or the
  // end of the process. `folder` empty: <parent>/<name>-<UTC time>. A lock left by a dead process
  // is taken over; where the file system has none, the folder is not locked. Throws ConfigError
  // naming the holder when another run writes there, IoError when the folder cannot be made.
  static RunFolder create(const std::filesystem::path& folder, const std::string& name,
                          const std::filesystem::path& parent = "runs");

  // The folder of a node whose ranks only write their logs there: made where it is not, and
  // nobody's lock is asked for. On a file system that all nodes see it is the one that rank 0's
  // node has made. Throws IoError.
  static RunFolder take_part(const std::filesystem::path& folder, const std::string& name,
                             const std::filesystem::path& parent = "runs");

  // The same folder seen from a rank of its launcher.
  static RunFolder attach(const std::filesystem::path& folder);

  ~RunFolder();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  RunFolder(const RunFolder&) = delete;

  bool is_locked() const {
    return lock_descriptor_ >= 0;
  }  // against another writer, by this object
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path events_path() const { return path_ / "events.jsonl"; }
  std::filesystem::path metrics_path() const { return path_ / "metrics.json"; }
  std::filesystem::path config_path() const { return path_ / "config.yaml"; }
  std::filesystem::path identity_path() const { return path_ / "run.json"; }
  std::filesystem::path logs_folder() const { return path_ / "logs"; }
  std::filesystem::path tensorboard_folder() const { return path_ / "tb"; }
  std::filesystem::path trace_file(int rank) const {
    return path_ / "traces" / ("rank-" + std::to_string(rank) + ".json");
  }
  std::filesystem::path checkpoints_folder() const { return path_ / "checkpoints"; }
  // Answers of evaluations: step-N.jsonl.
  std::filesystem::path samples_folder() const { return path_ / "samples"; }
  std::filesystem::path adapter_folder() const { return path_ / "adapter"; }
  std::filesystem::path model_folder() const { return path_ / "model"; }

  // Before the ranks start: config.yaml, and its values and origins in run.json, which
  // write_identity() keeps when it is given none. Throws IoError.
  void write_config(const std::string& config_yaml, const nlohmann::json& config,
                    const std::map<std::string, std::string>& origins) const;
  // The same for a folder whose run may not be changed before the new start is accepted: both stay
  // as they are until write_identity() takes the proposal over. Throws IoError.
  void propose_config(const nlohmann::json& config,
                      const std::map<std::string, std::string>& origins) const;
  // Writes run.json and config.yaml. A resumed run keeps the first "created" and adds to "starts".
  // Throws IoError.
  void write_identity(const RunIdentity& identity) const;
  // Merges `figures` into metrics.json. Throws IoError.
  void write_metrics(const nlohmann::json& figures) const;

 private:
  RunFolder(std::filesystem::path path, int lock_descriptor);

  std::filesystem::path path_;
  int lock_descriptor_ = -1;
};

std::string host_name();  // of this host, as run.json and the lock give it

// Whether some process writes the run in `folder` now. Takes no lock itself.
bool run_folder_is_held(const std::filesystem::path& folder);

}  // namespace convoy::telemetry
