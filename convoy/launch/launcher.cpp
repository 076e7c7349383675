// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/launcher.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "convoy/base/error.h"
#include "convoy/base/log.h"
#include "convoy/launch/descendants.h"
#include "convoy/launch/descriptor_limit.h"
#include "convoy/launch/error_file.h"
#include "convoy/launch/guard.h"
#include "convoy/launch/health/collective_verdict.h"
#include "convoy/launch/health/flight_pages.h"
#include "convoy/launch/memory_kills.h"
#include "convoy/launch/rank_process.h"
#include "convoy/launch/reserved_port.h"
#include "convoy/launch/scratch_folder.h"
#include "convoy/launch/verdict.h"

namespace convoy::launch {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPeerLost = static_cast<int>(ExitCode::PeerLost);
constexpr int kStopped = static_cast<int>(ExitCode::Stopped);

// A rank that lost its peer may be seen before the peer whose fault it was: the others get this long to speak.
constexpr std::chrono::milliseconds kPeerLostWait{400};
// Output of a rank that has ended is in the pipe already; what keeps the pipe open longer is not waited for.
constexpr std::chrono::milliseconds kOutputWait{200};
// How long a console that takes nothing is waited for after a stop, and after a failure, which may be followed by a
// restart. Else it may take its time.
constexpr std::chrono::milliseconds kConsoleWaitAtStop{500};
constexpr std::chrono::milliseconds kConsoleWaitAtFailure{10'000};
// How often one is looked at whose end only its debugger can see yet.
constexpr std::chrono::milliseconds kHeldWait{20};
// Orphans are killed, not asked.
constexpr std::chrono::milliseconds kOrphanWait{1'000};

// Lets a rank draw on the launcher's terminal, which it can not see itself.
std::map<std::string, std::string> terminal_environment() {
  std::map<std::string, std::string> environment = {{"CONVOY_PROGRESS", "bar"}};
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    environment["COLUMNS"] = std::to_string(size.ws_col);
  return environment;
}

// What the environment of everything in this job holds. A job inside a rank of another belongs to both.
std::string new_mark() {
  const char* const around = std::getenv("CONVOY_JOB");
  return fmt::format("CONVOY_JOB={}{}{}", around == nullptr ? "" : around,
                     around == nullptr ? "" : ":", new_run_id());
}

// torchrun's one macro.
std::vector<std::string> with_local_rank(const std::vector<std::string>& program, int local_rank) {
  constexpr std::string_view kMacro = "${local_rank}";
  std::vector<std::string> filled = program;
  for (size_t word = 1; word < filled.size(); ++word)
    for (size_t at = 0; (at = filled[word].find(kMacro, at)) != std::string::npos;)
      filled[word].replace(at, kMacro.size(), std::to_string(local_rank));
  return filled;
}

LogOptions log_options(const LaunchPlan& plan) {
  LogOptions options = plan.logs;
  options.num_local_ranks = plan.job.num_local_ranks;
  options.first_global_rank = plan.job.first_rank;
  options.role = plan.job.role;
  options.attempt = plan.job.restart_count;
  return options;
}

struct Rank {
  RankProcess process;
  std::filesystem::path error_file;
  bool running = true;
  bool held = false;  // it has ended, but a debugger that traces it has not let go yet
};

// One attempt from start to end: what to do next is decided by what ended, what signals came, what other nodes say and
// which deadline passed.
class Attempt {
 public:
  Attempt(const LaunchPlan& plan, SignalStream& signals, Peers* peers)
      : plan_(plan),
        peers_(peers),
        signals_(signals),
        descriptor_limit_(plan.job.num_local_ranks),
        mark_(new_mark()),
        guard_(scratch_.path(), mark_),
        pages_(plan.job.num_local_ranks, plan.job.first_rank),
        health_(pages_, plan.health),
        logs_(log_options(plan)) {
    descendants_.leave_alone(guard_.pid());
    scratch_.make();  // now that somebody tidies up whatever happens
  }
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  LaunchReport run();

 private:
  enum class Phase { Running, Stopping, Failing, Killing };

  void start_ranks();
  std::map<std::string, std::string> environment_of(int local_rank, const JobPlace& job) const;
  std::filesystem::path error_file_of(int local_rank) const;
  void wait_for_something();
  int wait_limit_ms() const;
  void read_stream(int local_rank, Stream stream);
  void handle_signals();
  void handle_signal(int signal);
  void handle_peers();
  void handle_health();
  void reap(int local_rank);
  RankEnd describe_end(int local_rank, int status);
  void after_end(const RankEnd& end);
  void fail_no_later_than(Clock::time_point time);
  void begin_failing(Clock::time_point now);
  void handle_deadlines();
  void drain(int local_rank);
  void signal_all(int signal);
  void kill_all();
  void give_up_on_unkillable();
  void note_failure(const RankEnd& end);
  void read_flights();
  void keep_flights();
  void close_logs();
  bool any_running() const;

  const LaunchPlan& plan_;
  Peers* peers_;
  SignalStream& signals_;
  ScratchFolder scratch_;
  DescriptorLimit descriptor_limit_;
  std::string mark_;
  DescendantKeeper descendants_;
  Guard guard_;
  FlightPages pages_;
  HealthWatch health_;
  LogRouter logs_;
  MemoryKills memory_kills_;
  std::optional<ReservedPort> port_;
  std::vector<Rank> ranks_;
  LaunchReport report_;
  Phase phase_ = Phase::Running;
  bool told_peers_ = false;
  std::optional<Clock::time_point> stop_repeats_until_;  // set: we were asked to stop
  std::optional<Clock::time_point> fail_at_;             // then the others are asked to end
  std::optional<Clock::time_point> kill_at_;             // then they are killed
  std::optional<Clock::time_point> give_up_at_;          // then they are not waited for
};

Attempt::~Attempt() {
  // Only when something was thrown are there ranks left.
  for (Rank& rank : ranks_) {
    if (!rank.running) continue;
    signal_group(rank.process.pid, SIGKILL);
    guard_.forget(rank.process.pid);
    ::waitpid(rank.process.pid, nullptr, 0);
  }
  descendants_.kill_orphans(kOrphanWait);
}

LaunchReport Attempt::run() {
  start_ranks();
  while (any_running()) {
    wait_for_something();
    if (phase_ != Phase::Running) logs_.hurry();
    logs_.handle_deadline();
    handle_signals();
    handle_peers();
    for (int local_rank = 0; local_rank < plan_.job.num_local_ranks; ++local_rank) reap(local_rank);
    handle_health();
    handle_deadlines();
  }
  descendants_.kill_orphans(kOrphanWait);
  close_logs();
  for (const telemetry::RankFlight& flight : pages_.read())
    if (flight.step >= 0) report_.progress = std::max(report_.progress.value_or(0), flight.step);
  conclude(report_, plan_.says_when_stopped);
  return std::move(report_);
}

void Attempt::close_logs() {
  std::optional<std::chrono::milliseconds> patience;
  if (phase_ != Phase::Running) patience = kConsoleWaitAtFailure;
  if (report_.stop_signal != 0) patience = kConsoleWaitAtStop;
  logs_.close(signals_.descriptor(), patience);
}

std::map<std::string, std::string> Attempt::environment_of(int local_rank,
                                                           const JobPlace& job) const {
  std::map<std::string, std::string> environment = worker_environment(job, local_rank);
  environment["TORCHELASTIC_ERROR_FILE"] = ranks_.back().error_file;
  environment[telemetry::kFlightVariable] = std::to_string(pages_.descriptor(local_rank));
  if (job.all_ranks_here()) environment["CONVOY_STORE_FILE"] = scratch_.store_file();
  const size_t equals = mark_.find('=');
  environment[mark_.substr(0, equals)] = mark_.substr(equals + 1);
  if (plan_.logs.console == Console::RankZeroPlain && job.first_rank + local_rank == 0 &&
      ::isatty(STDERR_FILENO))
    environment.merge(terminal_environment());
  for (const auto& [name, value] : plan_.environment) environment[name] = value;
  if (!plan_.ranks.empty())
    for (const auto& [name, value] : plan_.ranks[static_cast<size_t>(local_rank)].environment)
      environment[name] = value;
  return environment;
}

// Beside the logs where those are kept in torchrun's folders, which are there by now.
std::filesystem::path Attempt::error_file_of(int local_rank) const {
  const int attempt = plan_.job.restart_count;
  if (plan_.logs.layout != LogLayout::Torchrun) return scratch_.error_file(attempt, local_rank);
  const std::filesystem::path folder =
      plan_.logs.folder / fmt::format("attempt_{}", attempt) / std::to_string(local_rank);
  if (!std::filesystem::is_directory(folder)) return scratch_.error_file(attempt, local_rank);
  return folder / "error.json";
}

void Attempt::start_ranks() {
  JobPlace job = plan_.job;
  if (job.master_port == 0) {
    port_.emplace();
    job.master_port = port_->number();
  }
  for (int local_rank = 0; local_rank < job.num_local_ranks; ++local_rank) {
    ranks_.emplace_back();
    Rank& rank = ranks_.back();
    rank.running = false;
    rank.error_file = error_file_of(local_rank);
    RankStart start;
    start.program = with_local_rank(plan_.program, local_rank);
    start.environment = environment_of(local_rank, job);
    start.signals = signals_.mask_for_ranks();
    if (!plan_.ranks.empty()) start.cpus = plan_.ranks[static_cast<size_t>(local_rank)].cpus;
    start.descriptors = descriptor_limit_.before();
    start.inherited = pages_.descriptor(local_rank);
    rank.process = start_rank(start);
    rank.running = true;
    guard_.watch(rank.process.pid);
    health_.started(local_rank, rank.process.pid);
  }
}

bool Attempt::any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running; });
}

int Attempt::wait_limit_ms() const {
  std::optional<Clock::time_point> first;
  for (const auto& deadline :
       {fail_at_, kill_at_, give_up_at_, logs_.next_deadline(), health_.next_deadline()})
    if (deadline && (!first || *deadline < *first)) first = deadline;
  const bool held = std::any_of(ranks_.begin(), ranks_.end(),
                                [](const Rank& rank) { return rank.running && rank.held; });
  if (const auto look = Clock::now() + kHeldWait; held && (!first || look < *first)) first = look;
  if (!first) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

void Attempt::wait_for_something() {
  struct Source {
    int local_rank;  // -1 = nothing to read here
    Stream stream;
  };
  std::vector<pollfd> watched = {{signals_.descriptor(), POLLIN, 0}};
  std::vector<Source> sources = {{-1, Stream::Output}};
  const auto watch = [&](int descriptor, short events, int local_rank, Stream stream) {
    watched.push_back({descriptor, events, 0});
    sources.push_back({local_rank, stream});
  };
  if (peers_ != nullptr) watch(peers_->descriptor(), POLLIN, -1, Stream::Output);
  for (const int console : logs_.waiting_consoles())
    if (console >= 0) watch(console, POLLOUT, -1, Stream::Output);
  for (int local_rank = 0; local_rank < plan_.job.num_local_ranks; ++local_rank) {
    const Rank& rank = ranks_[static_cast<size_t>(local_rank)];
    if (!rank.running) continue;
    if (!rank.held) watch(rank.process.exited.get(), POLLIN, -1, Stream::Output);
    if (rank.process.output.open() && logs_.accepts(local_rank, Stream::Output))
      watch(rank.process.output.get(), POLLIN, local_rank, Stream::Output);
    if (rank.process.errors.open() && logs_.accepts(local_rank, Stream::Errors))
      watch(rank.process.errors.get(), POLLIN, local_rank, Stream::Errors);
  }
  if (::poll(watched.data(), watched.size(), wait_limit_ms()) <= 0) return;
  for (size_t index = 1; index < watched.size(); ++index)
    // What was read before may have filled the console.
    if (sources[index].local_rank >= 0 && watched[index].revents != 0 &&
        logs_.accepts(sources[index].local_rank, sources[index].stream))
      read_stream(sources[index].local_rank, sources[index].stream);
}

// One read: a rank that writes without end must not keep signals and deadlines waiting.
void Attempt::read_stream(int local_rank, Stream stream) {
  RankProcess& process = ranks_[static_cast<size_t>(local_rank)].process;
  Descriptor& descriptor = stream == Stream::Output ? process.output : process.errors;
  char bytes[64 << 10];
  const ssize_t received = ::read(descriptor.get(), bytes, sizeof(bytes));
  if (received > 0)
    logs_.take(local_rank, stream, {bytes, static_cast<size_t>(received)});
  else if (received == 0 || (errno != EAGAIN && errno != EINTR))
    descriptor.reset();
}

void Attempt::handle_signals() {
  while (const std::optional<int> signal = signals_.next()) handle_signal(*signal);
}

void Attempt::handle_signal(int signal) {
  if (signal == SIGPIPE) return;
  if (!contains(plan_.stop_signals, signal)) {
    signal_all(signal);
    return;
  }
  if (stop_repeats_until_) {
    if (Clock::now() < *stop_repeats_until_) return;
    report_.stop_signal = signal;
    report_.killed_by_stop = true;
    kill_all();
    return;
  }
  // Peers may have told us before: a job system signals every node. Then this is no second request.
  if (report_.stop_signal == 0 && peers_ != nullptr) peers_->report_stop();
  report_.stop_signal = signal;
  stop_repeats_until_ = Clock::now() + plan_.stop_repeat;
  if (phase_ != Phase::Running) return;
  phase_ = Phase::Stopping;
  fail_at_.reset();
  kill_at_ = Clock::now() + plan_.stop_grace;
  // A person who pressed Ctrl-C wants to know what is waited for.
  if (::isatty(STDERR_FILENO))
    Log().info(fmt::format("{}: ranks have {} s to end; once more ends them at once",
                           signal_name(signal), plan_.stop_grace.count() / 1000));
  signal_all(plan_.pass_stop_signal ? signal : SIGTERM);
}

void Attempt::handle_peers() {
  if (peers_ == nullptr) return;
  while (const std::optional<PeerOrder> order = peers_->next()) {
    if (order->kind == PeerOrder::Kind::Fail && !report_.peer_failure)
      report_.peer_failure = *order;
    if (phase_ != Phase::Running) continue;
    if (order->kind == PeerOrder::Kind::Fail) {
      told_peers_ = true;  // they told us
      if (report_.flights.empty()) read_flights();
      begin_failing(Clock::now());
      continue;
    }
    if (order->kind == PeerOrder::Kind::Resize)
      report_.resized = true;
    else
      report_.stop_signal = SIGTERM;
    phase_ = Phase::Stopping;
    fail_at_.reset();
    kill_at_ = Clock::now() + plan_.stop_grace;
    signal_all(SIGTERM);
  }
}

void Attempt::handle_health() {
  for (const HealthNotice& notice : health_.check(Clock::now())) {
    Log().warning(notice.sentence);
    if (!notice.fatal || phase_ != Phase::Running) continue;
    RankEnd end;
    end.rank = notice.rank;
    end.exit_code = kPeerLost;
    end.silent = true;
    end.sentence = notice.sentence;
    const int local_rank = notice.rank - plan_.job.first_rank;
    end.last_lines = logs_.last_lines(local_rank);
    end.log_file = logs_.file(local_rank);
    report_.ends.push_back(end);
    note_failure(end);
    begin_failing(Clock::now());
  }
}

void Attempt::signal_all(int signal) {
  for (const Rank& rank : ranks_)
    if (rank.running) signal_group(rank.process.pid, signal);
}

void Attempt::kill_all() {
  phase_ = Phase::Killing;
  fail_at_.reset();
  kill_at_.reset();
  give_up_at_ = Clock::now() + plan_.kill_wait;
  signal_all(SIGKILL);
}

void Attempt::drain(int local_rank) {
  RankProcess& process = ranks_[static_cast<size_t>(local_rank)].process;
  const auto until = Clock::now() + kOutputWait;
  while ((process.output.open() || process.errors.open()) && Clock::now() < until) {
    pollfd watched[2] = {{process.output.get(), POLLIN, 0}, {process.errors.get(), POLLIN, 0}};
    ::poll(watched, 2, 10);
    if (watched[0].revents != 0) read_stream(local_rank, Stream::Output);
    if (watched[1].revents != 0) read_stream(local_rank, Stream::Errors);
  }
  process.output.reset();
  process.errors.reset();
  logs_.finish(local_rank);
}

RankEnd Attempt::describe_end(int local_rank, int status) {
  RankEnd end;
  end.rank = plan_.job.first_rank + local_rank;
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.exit_code = WIFSIGNALED(status) ? 128 + end.signal : WEXITSTATUS(status);
  end.after_first_failure = phase_ == Phase::Failing || phase_ == Phase::Killing;
  end.last_lines = logs_.last_lines(local_rank);
  end.log_file = logs_.file(local_rank);
  ErrorFile error = read_error_file(ranks_[static_cast<size_t>(local_rank)].error_file);
  if (!error.sentence.empty()) logs_.note(local_rank, error.sentence);
  if (!error.sentence.empty() && plan_.logs.layout == LogLayout::Torchrun)
    end.error_file = ranks_[static_cast<size_t>(local_rank)].error_file;
  end.sentence = std::move(error.sentence);
  end.json_line = std::move(error.json_line);
  if (end.signal == SIGKILL && !end.after_first_failure && memory_kills_.happened()) {
    end.exit_code = static_cast<int>(ExitCode::Resources);
    end.out_of_memory = true;
  }
  return end;
}

void Attempt::reap(int local_rank) {
  Rank& rank = ranks_[static_cast<size_t>(local_rank)];
  pollfd watched{rank.process.exited.get(), POLLIN, 0};
  if (!rank.running || ::poll(&watched, 1, 0) <= 0) return;
  siginfo_t end{};
  ::waitid(P_PID, static_cast<id_t>(rank.process.pid), &end, WEXITED | WNOHANG | WNOWAIT);
  rank.held = end.si_pid == 0;
  if (rank.held) return;
  // The leader is a zombie until it is reaped, so its group's number can not have been given away yet.
  signal_group(rank.process.pid, SIGKILL);
  guard_.forget(rank.process.pid);
  int status = 0;
  const pid_t reaped = ::waitpid(rank.process.pid, &status, WNOHANG);
  CONVOY_INVARIANT(reaped == rank.process.pid, "process {} was reaped by somebody else",
                   rank.process.pid);
  rank.running = false;
  health_.ended(local_rank);
  drain(local_rank);
  report_.ends.push_back(describe_end(local_rank, status));
  after_end(report_.ends.back());
}

void Attempt::fail_no_later_than(Clock::time_point time) {
  fail_at_ = fail_at_ ? std::min(*fail_at_, time) : time;
}

void Attempt::after_end(const RankEnd& end) {
  if (phase_ == Phase::Failing || phase_ == Phase::Killing) return;
  const bool stopped =
      end.exit_code == kStopped || (phase_ == Phase::Stopping && end.signal != 0 &&
                                    (end.signal == SIGTERM || end.signal == report_.stop_signal));
  const auto now = Clock::now();
  if (stopped || end.exit_code == 0) {
    // The others should be about to end as well. While stopping, the stop's own grace bounds them.
    if (plan_.early_exit_is_failure && phase_ == Phase::Running && any_running())
      fail_no_later_than(now + plan_.early_exit_wait);
    return;
  }
  note_failure(end);
  if (any_running()) fail_no_later_than(end.exit_code == kPeerLost ? now + kPeerLostWait : now);
}

// The flight records as they stand when something first goes wrong here, and the other nodes, unless the cause may still be a
// peer's: then they find out themselves.
void Attempt::note_failure(const RankEnd& end) {
  if (report_.flights.empty()) {
    read_flights();
    const Verdict verdict = collective_verdict(report_.flights);
    // Where nobody waits, nothing is added to what the ranks say themselves.
    if (verdict.kind != VerdictKind::AllIdle) report_.verdict = verdict.text;
    report_.verdict_json = verdict_json(verdict);
    keep_flights();
  }
  if (peers_ == nullptr || told_peers_) return;
  told_peers_ = end.exit_code != kPeerLost;
  peers_->report_failure(end);
}

void Attempt::read_flights() {
  report_.flights = pages_.read();
  for (telemetry::RankFlight& flight : report_.flights)
    flight.ended =
        flight.ended || !ranks_[static_cast<size_t>(flight.rank - plan_.job.first_rank)].running;
}

void Attempt::keep_flights() {
  if (plan_.flight_folder.empty()) return;
  try {
    for (const telemetry::RankFlight& flight : report_.flights)
      if (flight.attached()) telemetry::write_flight_file(plan_.flight_folder, flight);
  } catch (const IoError& error) {
    Log().warning(error.sentence());
  }
}

void Attempt::begin_failing(Clock::time_point now) {
  phase_ = Phase::Failing;
  fail_at_.reset();
  kill_at_ = now + plan_.failure_grace;
  signal_all(SIGTERM);
}

void Attempt::give_up_on_unkillable() {
  for (size_t local_rank = 0; local_rank < ranks_.size(); ++local_rank) {
    Rank& rank = ranks_[local_rank];
    if (!rank.running) continue;
    rank.running = false;
    const int number = plan_.job.first_rank + static_cast<int>(local_rank);
    report_.unkillable.push_back(number);
    Log().warning(
        fmt::format("rank {} (process {}) does not end even after SIGKILL: it waits inside the "
                    "kernel, most often for a disk, a "
                    "network file system or a device; it is left behind",
                    number, rank.process.pid));
  }
}

void Attempt::handle_deadlines() {
  const auto now = Clock::now();
  if (fail_at_ && now >= *fail_at_) {
    report_.ended_early = std::all_of(
        report_.ends.begin(), report_.ends.end(),
        [](const RankEnd& end) { return end.exit_code == 0 || end.exit_code == kStopped; });
    if (report_.ended_early) note_failure(report_.ends.front());
    begin_failing(now);
  }
  if (kill_at_ && now >= *kill_at_) {
    if (phase_ == Phase::Stopping) report_.killed_by_stop = !report_.resized;
    kill_all();
  }
  if (give_up_at_ && now >= *give_up_at_) give_up_on_unkillable();
}

}  // namespace

LaunchReport run_ranks(const LaunchPlan& plan, SignalStream& signals, Peers* peers) {
  const int num_ranks = plan.job.num_local_ranks;
  CONVOY_CHECK(num_ranks >= 1, ConfigError, "at least one rank is needed, found {}", num_ranks);
  CONVOY_INVARIANT(plan.ranks.empty() || static_cast<int>(plan.ranks.size()) == num_ranks,
                   "{} set-ups for {} ranks", plan.ranks.size(), num_ranks);
  return Attempt(plan, signals, peers).run();
}

LaunchReport run_ranks(const LaunchPlan& plan) {
  SignalStream signals(plan.stop_signals);
  return run_ranks(plan, signals, nullptr);
}

}  // namespace convoy::launch
