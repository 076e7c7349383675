// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/launcher.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>

#include "convoy/base/error.h"
#include "convoy/launch/error_file.h"
#include "convoy/launch/guard.h"
#include "convoy/launch/rank_log.h"
#include "convoy/launch/rank_process.h"
#include "convoy/launch/scratch_folder.h"
#include "convoy/launch/signals.h"
#include "convoy/launch/verdict.h"
#include "convoy/launch/worker_environment.h"

namespace convoy::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPeerLost = static_cast<int>(ExitCode::PeerLost);
constexpr int kStopped = static_cast<int>(ExitCode::Stopped);

// A rank that lost its peer may be seen before the peer whose fault it was: the others get this long to speak.
constexpr std::chrono::milliseconds kPeerLostWait{400};
// Output of a rank that has ended is in the pipe already; what keeps the pipe open longer is not waited for.
constexpr std::chrono::milliseconds kOutputWait{200};

// Lets a rank draw on the launcher's terminal, which it can not see itself.
std::map<std::string, std::string> terminal_environment() {
  std::map<std::string, std::string> environment = {{"CONVOY_PROGRESS", "bar"}};
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    environment["COLUMNS"] = std::to_string(size.ws_col);
  return environment;
}

struct Rank {
  RankProcess process;
  RankLog log;
  std::filesystem::path error_file;
  bool running = true;
};

// One launch from start to end: what to do next is decided by what ended, what signals came and which deadline passed.
class Launch {
 public:
  explicit Launch(const LaunchPlan& plan) : plan_(plan), guard_(scratch_.path()) {}
  ~Launch();
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  LaunchReport run();

 private:
  enum class Phase { Running, Stopping, Failing, Killing };

  void start_ranks();
  void wait_for_something();
  void read_stream(Rank& rank, Descriptor& descriptor, Stream stream);
  void handle_signals();
  void handle_signal(int signal);
  void reap(int number);
  void after_end(const RankEnd& end);
  void handle_deadlines();
  void drain(Rank& rank);
  void signal_all(int signal);
  void kill_all();
  size_t num_running() const;

  const LaunchPlan& plan_;
  SignalStream signals_;
  ScratchFolder scratch_;
  Guard guard_;
  std::vector<Rank> ranks_;
  LaunchReport report_;
  Phase phase_ = Phase::Running;
  std::optional<Clock::time_point> fail_at_;  // then the others are asked to end
  std::optional<Clock::time_point> kill_at_;  // then they are killed
};

Launch::~Launch() {
  // Only when something was thrown are there ranks left.
  for (Rank& rank : ranks_) {
    if (!rank.running) continue;
    signal_group(rank.process.pid, SIGKILL);
    guard_.forget(rank.process.pid);
    ::waitpid(rank.process.pid, nullptr, 0);
  }
}

LaunchReport Launch::run() {
  start_ranks();
  while (num_running() > 0) {
    wait_for_something();
    handle_signals();
    for (int number = 0; number < plan_.num_ranks; ++number) reap(number);
    handle_deadlines();
  }
  conclude(report_);
  return std::move(report_);
}

void Launch::start_ranks() {
  WorkerPlace place;
  place.num_ranks = plan_.num_ranks;
  place.master_port = free_port();
  place.run_id = plan_.run_id.empty() ? new_run_id() : plan_.run_id;
  place.store_file = scratch_.store_file();
  for (int number = 0; number < plan_.num_ranks; ++number) {
    place.rank = number;
    place.error_file = scratch_.error_file(number);
    std::map<std::string, std::string> environment = worker_environment(place);
    if (plan_.console == Console::RankZeroPlain && number == 0 && ::isatty(STDERR_FILENO))
      environment.merge(terminal_environment());
    for (const auto& [name, value] : plan_.environment) environment[name] = value;
    const std::filesystem::path file =
        plan_.log_folder.empty() ? std::filesystem::path()
                                 : plan_.log_folder / fmt::format("rank-{:02d}.log", number);
    RankLog log(number, plan_.console, file);
    RankProcess process = start_rank(plan_.program, environment, signals_.mask_before());
    guard_.watch(process.pid);
    ranks_.push_back({std::move(process), std::move(log), place.error_file});
  }
}

size_t Launch::num_running() const {
  return static_cast<size_t>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; }));
}

void Launch::wait_for_something() {
  std::vector<pollfd> watched = {{signals_.descriptor(), POLLIN, 0}};
  struct Source {
    Rank* rank;
    Stream stream;
  };
  std::vector<Source> sources = {{nullptr, Stream::Output}};
  const auto watch = [&](const Descriptor& descriptor, Rank* rank, Stream stream) {
    if (!descriptor.open()) return;
    watched.push_back({descriptor.get(), POLLIN, 0});
    sources.push_back({rank, stream});
  };
  for (Rank& rank : ranks_) {
    if (!rank.running) continue;
    watch(rank.process.output, &rank, Stream::Output);
    watch(rank.process.errors, &rank, Stream::Errors);
    watch(rank.process.exited, nullptr, Stream::Output);
  }
  int timeout_ms = -1;
  for (const auto& deadline : {fail_at_, kill_at_}) {
    if (!deadline) continue;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*deadline - Clock::now()).count();
    const int left_ms = static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
    timeout_ms = timeout_ms < 0 ? left_ms : std::min(timeout_ms, left_ms);
  }
  if (::poll(watched.data(), watched.size(), timeout_ms) <= 0) return;
  for (size_t index = 1; index < watched.size(); ++index) {
    Rank* const rank = sources[index].rank;
    if (rank == nullptr || watched[index].revents == 0) continue;
    const Stream stream = sources[index].stream;
    read_stream(*rank, stream == Stream::Output ? rank->process.output : rank->process.errors,
                stream);
  }
}

// One read: a rank that writes without end must not keep signals and deadlines waiting.
void Launch::read_stream(Rank& rank, Descriptor& descriptor, Stream stream) {
  char bytes[64 << 10];
  const ssize_t received = ::read(descriptor.get(), bytes, sizeof(bytes));
  if (received > 0)
    rank.log.take(stream, {bytes, static_cast<size_t>(received)});
  else if (received == 0 || (errno != EAGAIN && errno != EINTR))
    descriptor.reset();
}

void Launch::handle_signals() {
  while (const std::optional<int> signal = signals_.next()) handle_signal(*signal);
}

void Launch::handle_signal(int signal) {
  if (signal == SIGPIPE) return;
  if (signal == SIGUSR1 || signal == SIGUSR2) {
    signal_all(signal);
    return;
  }
  if (report_.stop_signal != 0) {
    report_.stop_signal = signal;
    report_.killed_by_stop = true;
    kill_all();
    return;
  }
  report_.stop_signal = signal;
  if (phase_ != Phase::Running) return;
  phase_ = Phase::Stopping;
  fail_at_.reset();
  kill_at_ = Clock::now() + plan_.stop_grace;
  signal_all(SIGTERM);
}

void Launch::signal_all(int signal) {
  for (const Rank& rank : ranks_)
    if (rank.running) signal_group(rank.process.pid, signal);
}

void Launch::kill_all() {
  phase_ = Phase::Killing;
  fail_at_.reset();
  kill_at_.reset();
  signal_all(SIGKILL);
}

void Launch::drain(Rank& rank) {
  const auto until = Clock::now() + kOutputWait;
  while ((rank.process.output.open() || rank.process.errors.open()) && Clock::now() < until) {
    pollfd watched[2] = {{rank.process.output.get(), POLLIN, 0},
                         {rank.process.errors.get(), POLLIN, 0}};
    ::poll(watched, 2, 10);
    if (watched[0].revents != 0) read_stream(rank, rank.process.output, Stream::Output);
    if (watched[1].revents != 0) read_stream(rank, rank.process.errors, Stream::Errors);
  }
  rank.log.finish();
}

void Launch::reap(int number) {
  Rank& rank = ranks_[static_cast<size_t>(number)];
  pollfd watched{rank.process.exited.get(), POLLIN, 0};
  if (!rank.running || ::poll(&watched, 1, 0) <= 0) return;
  // The leader is a zombie until it is reaped, so its group's number can not have been given away yet.
  signal_group(rank.process.pid, SIGKILL);
  guard_.forget(rank.process.pid);
  int status = 0;
  while (::waitpid(rank.process.pid, &status, 0) < 0 && errno == EINTR) {
  }
  rank.running = false;
  drain(rank);
  RankEnd end;
  end.rank = number;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.exit_code = WIFSIGNALED(status) ? 128 + end.signal : WEXITSTATUS(status);
  end.after_first_failure = phase_ == Phase::Failing || phase_ == Phase::Killing;
  end.last_lines = rank.log.last_lines();
  end.log_file = rank.log.file();
  ErrorFile error = read_error_file(rank.error_file);
  if (!error.sentence.empty()) rank.log.note(error.sentence);
  end.sentence = std::move(error.sentence);
  end.json_line = std::move(error.json_line);
  report_.ends.push_back(end);
  after_end(end);
}

void Launch::after_end(const RankEnd& end) {
  if (num_running() == 0 || phase_ == Phase::Failing || phase_ == Phase::Killing) return;
  const bool stopped =
      end.exit_code == kStopped || (phase_ == Phase::Stopping && end.exit_code == 128 + SIGTERM);
  const auto now = Clock::now();
  const auto fail_no_later_than = [&](Clock::time_point time) {
    fail_at_ = fail_at_ ? std::min(*fail_at_, time) : time;
  };
  if (stopped || end.exit_code == 0) {
    // The others should be about to end as well. While stopping, the stop's own grace bounds them.
    if (plan_.early_exit_is_failure && phase_ == Phase::Running)
      fail_no_later_than(now + plan_.early_exit_wait);
  } else if (end.exit_code == kPeerLost) {
    fail_no_later_than(now + kPeerLostWait);
  } else {
    fail_no_later_than(now);
  }
}

void Launch::handle_deadlines() {
  const auto now = Clock::now();
  if (fail_at_ && now >= *fail_at_) {
    phase_ = Phase::Failing;
    fail_at_.reset();
    kill_at_ = now + plan_.failure_grace;
    report_.ended_early = std::all_of(
        report_.ends.begin(), report_.ends.end(),
        [](const RankEnd& end) { return end.exit_code == 0 || end.exit_code == kStopped; });
    signal_all(SIGTERM);
  }
  if (kill_at_ && now >= *kill_at_) {
    if (phase_ == Phase::Stopping) report_.killed_by_stop = true;
    kill_all();
  }
}

}  // namespace

LaunchReport run_ranks(const LaunchPlan& plan) {
  CONVOY_CHECK(plan.num_ranks >= 1, ConfigError, "at least one rank is needed, found {}",
               plan.num_ranks);
  return Launch(plan).run();
}

}  // namespace convoy::launch
