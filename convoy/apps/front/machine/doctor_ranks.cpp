// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/machine/doctor_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/apps/front/worker/worker_ranks.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/quiet_thread.h"
#include "convoy/launch/rendezvous/endpoint.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/machine/processes/scratch_folder.h"

namespace convoy::apps {
namespace {

using monitor::Finding;
using monitor::RanksFacts;

constexpr int kMeetingSeconds = 60;  // wait for other nodes to join
constexpr int kRanksSeconds = 40;    // wait for ranks to start and to end
// Timeout of one collective. Gloo retries connecting for five times as long; NCCL takes seconds to
// start.
constexpr int kGlooSeconds = 5;
constexpr int kNcclSeconds = 20;

// Sends this process a stop request when the time is over, and the launcher then ends its ranks.
// Does nothing when the launcher has already returned.
class TimeLimit {
 public:
  explicit TimeLimit(double seconds)
      : before_(std::signal(SIGTERM, [](int) {})), thread_(quiet_thread([this, seconds] {
          std::unique_lock lock(mutex_);
          if (wake_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [this] { return over_; }))
            return;
          expired_ = true;
          ::kill(::getpid(), SIGTERM);
        })) {}
  ~TimeLimit() {
    end();
    std::signal(SIGTERM, before_);
  }
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

  // Ends the limit. Returns true when it had passed before this call.
  bool end() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
    return expired_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  bool expired_ = false;
  void (*before_)(int);
  std::thread thread_;
};

bool has_several_nodes(const launch::MemberFlags& members) {
  return !members.nnodes.empty() && members.nnodes != "1";
}

launch::SetupRequest request_of(const Context& context, const RanksToTry& wanted,
                                const std::string& devices) {
  launch::DeviceFlags flags;
  flags.devices = devices;
  launch::SetupRequest request = worker_request(context, flags);
  request.members = wanted.members;
  const bool several = has_several_nodes(wanted.members);
  if (request.members.nproc_per_node.empty()) request.members.nproc_per_node = several ? "1" : "2";
  // The ranks belong to this host alone, so an outer job system or launcher is ignored.
  if (!several) request.members.env_source = "none";
  if (several && request.members.rdzv_conf.empty())
    request.members.rdzv_conf = fmt::format("join_timeout={}", kMeetingSeconds);
  return request;
}

std::string sentence_of(const launch::LaunchReport& report) {
  if (report.peer_failure) return report.peer_failure->sentence;
  const launch::RankEnd& cause = report.ends.at(static_cast<size_t>(report.root_cause));
  if (!cause.sentence.empty()) return cause.sentence;
  const std::string lines = cause.last_lines.substr(0, cause.last_lines.find_last_not_of('\n') + 1);
  const std::string last = lines.substr(lines.rfind('\n') + 1);
  return fmt::format("a rank ended with {}{}", cause.exit_code, last.empty() ? "" : ": " + last);
}

class RanksTrial {
 public:
  RanksTrial(const Context& context, const RanksToTry& wanted, const std::string& devices)
      : context_(context), wanted_(wanted), devices_(devices) {
    facts_.check = devices == "cpu" ? "gloo" : "nccl";
  }

  RanksFacts run() {
    const launch::SetupRequest request = request_of(context_, wanted_, devices_);
    const launch::JobSetup setup = launch::set_up_job(request, launch::process_environment());
    facts_.nodes = setup.nodes.most;
    facts_.limit_s = kRanksSeconds + (setup.several_nodes() ? kMeetingSeconds : 0);
    facts_.network =
        monitor::read_network(setup.several_nodes() ? setup.endpoint.host : "", interface_wanted());
    facts_.network.is_master = setup.wanted_node_rank == 0 || setup.hosts_endpoint;
    if (facts_.network.leads_back()) {
      facts_.failure = "this is the only node";
      return facts_;
    }
    TimeLimit limit(facts_.limit_s);
    try {
      look_at(launch::run_job(spec_of(request, setup)), limit);
    } catch (const Error& error) {
      facts_.timed_out = limit.end();
      facts_.met = false;
      facts_.failure = error.what();
      facts_.advice = error.location().hint;
    }
    return facts_;
  }

 private:
  static std::string interface_wanted() {
    const auto environment = launch::process_environment();
    const auto found = environment.find("GLOO_SOCKET_IFNAME");
    return found == environment.end() ? "" : found->second;
  }

  launch::JobSpec spec_of(const launch::SetupRequest& request, const launch::JobSetup& setup) {
    folder_.make();
    launch::LaunchSpec attempt = worker_spec(context_);
    attempt.logs.console = launch::Console::Silent;
    attempt.stop_grace = std::chrono::seconds(2);
    launch::JobSpec job = launch::make_job_spec(request, setup, attempt, Log(LogLevel::Quiet));
    job.attempt.program = {worker_program(context_).string(),
                           "check-ranks",
                           "--output-folder",
                           folder_.path().string(),
                           "--devices",
                           devices_,
                           "--gpus",
                           std::to_string(wanted_.num_gpus),
                           "--limit",
                           std::to_string(devices_ == "cpu" ? kGlooSeconds : kNcclSeconds)};
    job.reports_failures = false;
    return job;
  }

  void look_at(const launch::LaunchReport& report, TimeLimit& limit) {
    facts_.timed_out = limit.end();
    if (report.stop_signal != 0 && !facts_.timed_out)
      throw StopRequest("stopped during the test of ranks", {.hint = "run it again"});
    if (facts_.timed_out) return;
    if (report.failed()) {
      facts_.met = !report.ends.empty();
      facts_.elsewhere = facts_.met && report.root_cause < 0;
      facts_.failure = sentence_of(report);
      return;
    }
    for (const launch::RankEnd& end : report.ends)
      if (monitor::read_ranks_figures(folder_.path() / fmt::format("rank-{}.json", end.rank),
                                      facts_))
        return;
    facts_.failure = "the ranks ended without a message";
  }

  const Context& context_;
  const RanksToTry& wanted_;
  std::string devices_;
  processes::ScratchFolder folder_;
  RanksFacts facts_;
};

std::string why_no_nccl(const RanksToTry& wanted) {
  const bool several = has_several_nodes(wanted.members);
  if (wanted.num_gpus == 0)
    return wanted.has_gpus ? "ranks here cannot compute on the GPUs" : "no GPU";
  if (!several && wanted.num_gpus == 1) return "skipped: communication needs at least two GPUs";
  return "";
}

std::string why_no_ranks(const Context& context, const RanksToTry& wanted) {
  if (!wanted.has_libtorch) return "no LibTorch";
  try {
    worker_program(context);
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace

std::vector<Finding> try_ranks(const Context& context, const RanksToTry& wanted) {
  RanksFacts gloo, nccl{.check = "nccl", .not_checked = why_no_nccl(wanted)};
  if (const std::string why = why_no_ranks(context, wanted); !why.empty()) {
    gloo.not_checked = nccl.not_checked = why;
  } else {
    gloo = RanksTrial(context, wanted, "cpu").run();
    const bool failed = !gloo.failure.empty() || gloo.timed_out;
    if (nccl.not_checked.empty() && failed) nccl.not_checked = "its ranks meet over Gloo first";
    // Every node has the facts of all ranks and decides the same, so no node waits for an NCCL test
    // that another node skips.
    const auto without =
        std::find_if(gloo.ranks.begin(), gloo.ranks.end(),
                     [](const monitor::RankLocation& rank) { return rank.gpus == 0; });
    if (nccl.not_checked.empty() && without != gloo.ranks.end())
      nccl.not_checked = fmt::format("ranks on {} cannot use a GPU", without->host);
    if (nccl.not_checked.empty()) nccl = RanksTrial(context, wanted, "cuda").run();
  }
  std::vector<Finding> findings = monitor::judge_ranks(gloo);
  for (Finding& finding : monitor::judge_ranks(nccl)) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace convoy::apps
