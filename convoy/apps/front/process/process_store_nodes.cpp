// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_store_nodes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/jobs/postgres/connection_url.h"
#include "convoy/launch/rendezvous/job_token.h"

namespace convoy::apps {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;

// A node that leaves waits no longer than this for its store.
constexpr std::chrono::milliseconds kLeaveLimit{2'000};

constexpr const char* kMemberWorkload = "process-node";

std::string password_of_the_job() {
  const auto token = rendezvous::JobToken::from_environment("");
  if (token.guessable())
    throw ConfigError(
        "nodes that share no folder need a common secret for node 0's store, found no job token",
        {.key = "workers.texts_in_store",
         .hint = fmt::format("set {} to the same random text of 16 characters or more on all nodes "
                             "(openssl rand -hex 16), or give all of them --store postgresql://...",
                             rendezvous::JobToken::kVariable)});
  return hex_of(hmac_sha256(token.key(), "the store of convoy process"));
}

void require_server(const std::string& store) {
  if (jobs::names_postgres(store)) return;
  throw ConfigError(
      fmt::format("nodes that share no folder need a PostgreSQL store, found the file {}", store),
      {.key = "workers.store",
       .hint = "give all nodes the URL of one server (`convoy store serve` starts one), or leave "
               "the store out: node 0 then starts its own"});
}

}  // namespace

StoreNodes::StoreNodes(const settings::WorkerSettings& workers,
                       const std::filesystem::path& run_folder, std::string run_name,
                       const Log& log)
    : ProcessNodes(workers, log), run_name_(std::move(run_name)), url_(workers.store) {
  if (!url_.empty()) {
    require_server(url_);
    return;
  }
  const std::string password = password_of_the_job();
  if (publishes()) start_server(run_folder, password);
  url_ = private_store_url(workers_.master_addr, workers_.master_port, password);
}

StoreNodes::~StoreNodes() {
  try {
    if (member_ != 0) leave();
    if (server_) wait_for_members();
  } catch (const Error&) {
    // The store is gone, so no node reads from it.
  }
}

int64_t StoreNodes::member_group(jobs::JobStore& store) const {
  return store.register_group(run_name_ + "/nodes", kMemberWorkload, "1").group.number;
}

// Adds an open task for this node: each node at work has one. Finishes the task that a killed
// earlier start of this node left open.
void StoreNodes::enter(jobs::JobStore& store) {
  if (publishes()) return;
  const int64_t group = member_group(store);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const jobs::NewTask member{.parameters = json{{"node", workers_.node_rank},
                                                {"process", ::getpid()},
                                                {"since_ns", std::chrono::nanoseconds(now).count()}}
                                               .dump()};
  store.add(group, {&member, 1});
  std::vector<jobs::Finish> gone;
  store.for_each_task(group, [&](const jobs::TaskRecord& task) {
    if (task.parameters == member.parameters)
      member_ = task.number;
    else if (!task.result && json::parse(task.parameters).at("node") == workers_.node_rank)
      gone.push_back({.task = task.number, .result = {}});
  });
  if (!gone.empty()) store.finish(gone);
}

void StoreNodes::leave() const {
  const auto store =
      jobs::open_store(url_, {.busy_limit = kLeaveLimit, .server_limit = kLeaveLimit});
  const jobs::Finish end{.task = member_, .result = {}};
  store->finish({&end, 1});
}

void StoreNodes::wait_for_members() const {
  const auto store = jobs::open_store(url_);
  const int64_t group = member_group(*store);
  const auto limit = steady_clock::now() + kWaitForMembers;
  if (store->count_open(group, 1) > 0)
    log_.info(fmt::format("waiting {} s at most for nodes that use this node's store",
                          kWaitForMembers.count()));
  while (store->count_open(group, 1) > 0 && steady_clock::now() < limit)
    std::this_thread::sleep_for(kLookEvery);
}

std::optional<SharedRun> StoreNodes::wait_for_share(const json& configuration) const {
  auto say = steady_clock::now();
  const auto keep_waiting = [&](std::chrono::milliseconds left) {
    const auto now = steady_clock::now();
    if (now < say) return true;
    say = now + kSayWaitingEvery;
    log_.info(fmt::format("node {} waits for the store, {} min at most: {} does not answer",
                          workers_.node_rank, std::chrono::ceil<std::chrono::minutes>(left).count(),
                          workers_.store.empty() ? "node 0" : "the server"));
    return true;
  };
  jobs::open_store(url_, {.busy_limit = kWaitForNodeZero, .keep_waiting = keep_waiting});
  return SharedRun{
      .store = url_, .configuration = configuration, .data_hash = {}, .selection = nullptr};
}

}  // namespace convoy::apps
