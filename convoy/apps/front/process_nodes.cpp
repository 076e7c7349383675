// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process_nodes.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::minutes kWaitForNodeZero{10};
// A node that died leaves its mark; the others read the end of the run within a second.
constexpr std::chrono::seconds kWaitForReaders{20};
constexpr std::chrono::milliseconds kLookEvery{200};

bool any_member(const fs::path& folder) {
  std::error_code ignored;
  return fs::directory_iterator(folder, ignored) != fs::directory_iterator();
}

}  // namespace

ProcessNodes::ProcessNodes(const settings::WorkerSettings& workers, fs::path run_folder,
                           const Log& log)
    : workers_(workers), folder_(std::move(run_folder)), log_(log) {
  if (workers_.num_nodes == 1) return;
  if (!publishes()) return;
  std::error_code ignored;
  fs::remove(shared_file(), ignored);  // of an earlier start
  fs::remove_all(folder_ / "nodes", ignored);
  if (!workers_.store.empty()) return;
  server_.emplace(
      PrivateStoreOptions{
          .folder = folder_ / "store", .host = workers_.master_addr, .port = workers_.master_port},
      log_);
  log_.info(fmt::format("the store of the run serves at {}:{}", workers_.master_addr,
                        workers_.master_port));
}

ProcessNodes::~ProcessNodes() {
  std::error_code ignored;
  if (!publishes()) fs::remove(member_file(), ignored);
  if (!server_) return;
  const auto limit = std::chrono::steady_clock::now() + kWaitForReaders;
  while (any_member(folder_ / "nodes") && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(kLookEvery);
}

fs::path ProcessNodes::member_file() const {
  return folder_ / "nodes" / std::to_string(workers_.node_rank);
}

std::string ProcessNodes::store() const {
  if (server_) return server_->url();
  return workers_.store.empty() ? (folder_ / "ledger.db").string() : workers_.store;
}

void ProcessNodes::share(const SharedRun& run) const {
  if (workers_.num_nodes == 1) return;
  const mode_t before = ::umask(0077);  // it holds a password
  write_file_atomic(shared_file(), nlohmann::json{{"store", run.store},
                                                  {"configuration", run.configuration},
                                                  {"data_hash", run.data_hash},
                                                  {"selection", run.selection}}
                                       .dump());
  ::umask(before);
}

SharedRun ProcessNodes::wait_for_share(const nlohmann::json& configuration) const {
  log_.info(fmt::format("node {} waits for node 0 in {}", workers_.node_rank, folder_.string()));
  const auto limit = std::chrono::steady_clock::now() + kWaitForNodeZero;
  bool differs = false;
  while (std::chrono::steady_clock::now() < limit) {
    if (fs::exists(shared_file())) {
      const nlohmann::json shared = nlohmann::json::parse(read_file(shared_file()));
      differs = shared.at("configuration") != configuration;
      if (!differs) {
        write_file_atomic(member_file(), "");
        return {.store =
                    workers_.store.empty() ? shared.at("store").get<std::string>() : workers_.store,
                .configuration = shared.at("configuration"),
                .data_hash = shared.at("data_hash"),
                .selection = shared.at("selection")};
      }
    }
    std::this_thread::sleep_for(kLookEvery);
  }
  throw ConfigError(
      differs ? fmt::format("node 0's run in {} has another configuration", folder_.string())
              : fmt::format("node 0 has not begun a run in {}", folder_.string()),
      {.key = "workers.node_rank",
       .hint = "all nodes want the same configuration, and a --run-dir that all of them see"});
}

}  // namespace convoy::apps
