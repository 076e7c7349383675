// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_folder_nodes.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

// Advice for the waiting user.
std::string why_it_waits(const std::string& state, const fs::path& folder) {
  if (state == "absent" && fs::exists(folder / "config.yaml"))
    return fmt::format(
        "the run in {} was started as the run of one node. Stop it, and start node 0 with the same "
        "number of nodes as this one",
        folder.string());
  if (state == "absent")
    return fmt::format(
        "it has written nothing to {}. Start node 0. If it runs already, give every node --run-dir "
        "with a folder that all of them see, or --texts-in-store, which needs no common folder",
        folder.string());
  if (state == "planning") return "it is planning the rows";
  if (state == "stopped") return "it was stopped; the same command starts it again";
  return fmt::format("its run in {} has another configuration", folder.string());
}

bool any_member(const fs::path& folder) {
  std::error_code ignored;
  return fs::directory_iterator(folder, ignored) != fs::directory_iterator();
}

}  // namespace

FolderNodes::FolderNodes(const settings::WorkerSettings& workers, fs::path run_folder,
                         const Log& log)
    : ProcessNodes(workers, log), folder_(std::move(run_folder)) {
  if (workers_.num_nodes == 1) return;
  if (!publishes()) return;
  std::error_code ignored;
  fs::remove_all(folder_ / "nodes", ignored);  // from an earlier start
  write_state("planning", nlohmann::json::object());
  if (workers_.store.empty()) start_server(folder_);
}

FolderNodes::~FolderNodes() {
  std::error_code ignored;
  if (!publishes()) fs::remove(member_file(), ignored);
  if (publishes() && workers_.num_nodes > 1 && !finished_) leave_unfinished();
  if (!server_) return;
  const auto limit = std::chrono::steady_clock::now() + kWaitForMembers;
  while (any_member(folder_ / "nodes") && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(kLookEvery);
}

void FolderNodes::leave_unfinished() const {
  try {
    write_state("stopped", nlohmann::json::object());
  } catch (const IoError&) {
    // The other nodes then do not find the store and report that.
  }
}

fs::path FolderNodes::member_file() const {
  return folder_ / "nodes" / std::to_string(workers_.node_rank);
}

std::string FolderNodes::store() const {
  if (server_) return server_->url();
  return workers_.store.empty() ? (folder_ / "ledger.db").string() : workers_.store;
}

void FolderNodes::write_state(const char* state, nlohmann::json facts) const {
  facts["state"] = state;
  const mode_t before = ::umask(0077);  // the state file may hold a password
  try {
    write_file_atomic(shared_file(), facts.dump());
  } catch (...) {
    ::umask(before);
    throw;
  }
  ::umask(before);
}

void FolderNodes::share(const SharedRun& run) const {
  if (workers_.num_nodes == 1) return;
  write_state("open", {{"store", run.store},
                       {"configuration", run.configuration},
                       {"data_hash", run.data_hash},
                       {"selection", run.selection}});
}

void FolderNodes::finish(const nlohmann::json& configuration) {
  finished_ = true;
  if (workers_.num_nodes > 1) write_state("finished", {{"configuration", configuration}});
}

std::optional<SharedRun> FolderNodes::wait_for_share(const nlohmann::json& configuration) const {
  const auto limit = std::chrono::steady_clock::now() + kWaitForNodeZero;
  auto say_again = std::chrono::steady_clock::now();
  std::string said;
  std::string state;
  while (std::chrono::steady_clock::now() < limit) {
    const nlohmann::json shared = fs::exists(shared_file())
                                      ? nlohmann::json::parse(read_file(shared_file()))
                                      : nlohmann::json{{"state", "absent"}};
    state = shared.value("state", "");
    const bool is_ours =
        shared.contains("configuration") && shared["configuration"] == configuration;
    if (state == "finished" && is_ours) {
      log_.info(
          fmt::format("the run in {} has ended, and node 0 has published it: nothing is left "
                      "for node {}",
                      folder_.string(), workers_.node_rank));
      return std::nullopt;
    }
    if (state == "open" && is_ours) {
      write_file_atomic(member_file(), "");
      return SharedRun{
          .store = workers_.store.empty() ? shared.at("store").get<std::string>() : workers_.store,
          .configuration = shared.at("configuration"),
          .data_hash = shared.at("data_hash"),
          .selection = shared.at("selection")};
    }
    const auto now = std::chrono::steady_clock::now();
    const std::string why = why_it_waits(state, folder_);
    if (why != said || now >= say_again) {
      log_.info(fmt::format("node {} waits for node 0, {} min at most: {}", workers_.node_rank,
                            std::chrono::ceil<std::chrono::minutes>(limit - now).count(), why));
      said = why;
      say_again = now + kSayWaitingEvery;
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  throw ConfigError(
      fmt::format("node 0 has shared no run to join: {}", why_it_waits(state, folder_)),
      {.key = "workers.node_rank",
       .hint = "give all nodes the same settings, and a --run-dir that all of them see"});
}

}  // namespace convoy::apps
