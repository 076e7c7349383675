// SPDX-License-Identifier: Apache-2.0
//
// `convoy gpus watch`: samples GPUs and host into a file, to stdout or to the terminal. One thread
// reads devices and writes; the other handles the terminal, signals and the end.
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/machine/visible_gpus.h"
#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/quiet_thread.h"
#include "convoy/core/base/terminal_size.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/config/resolve.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/machine/monitor/watch/device_sampler.h"
#include "convoy/machine/monitor/watch/recorder.h"
#include "convoy/machine/monitor/watch/screen.h"
#include "convoy/machine/monitor/watch/watch_summary.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

using Clock = std::chrono::steady_clock;

struct MonitorFlags {
  double interval = 1;
  double duration = 0;
  int64_t count = 0;
  std::string output;
  std::string format = "csv";
  std::string schema = "v1";
  bool dmon = false;
  bool all = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("interval", interval, "seconds between looks").above(0).at_most(86'400);
    visit("duration", duration, "seconds to watch; 0 = until Ctrl-C").at_least(0);
    visit("count", count, "looks; 0 = no bound").at_least(0);
    visit("output", output,
          "file to append to; empty = stdout, or with --schema seed gpu_usage.csv. FILE.meta.json "
          "lists missing metrics with reasons")
        .alias("o");
    visit("format", format, "format of the rows; prom is Prometheus text of the last sample")
        .one_of({"csv", "jsonl", "prom"});
    visit("schema", schema, "columns of the CSV; seed = those of the multi-GPU guide's script")
        .one_of({"v1", "seed"});
    visit("dmon", dmon, "rolling lines, as nvidia-smi dmon");
    visit("all", all, kAllGpusHelp);
  }
};

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Samples the devices on a thread of its own, so that a slow driver does not freeze the terminal.
class Watch {
 public:
  Watch(monitor::DeviceReader& reader, const monitor::DeviceSources& sources,
        monitor::Recorder* recorder, const MonitorFlags& flags)
      : reader_(reader),
        recorder_(recorder),
        sampler_(reader, sources, recorder),
        interval_s_(flags.interval),
        most_looks_(flags.count) {
    news_ = Descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!news_.open())
      throw IoError("the system gives no event descriptor",
                    {.hint = "raise the limit of open files (ulimit -n)"});
  }
  ~Watch() { stop(); }

  // Samples once in the caller's thread. Returns the seconds it took.
  double first_look() {
    cpu_begin_ = cpu_seconds();
    look();
    return sampler_.cost().longest_tick_ms / 1000;
  }

  void set_interval(double seconds) { interval_s_ = seconds; }
  void start() {
    thread_ = quiet_thread([this] { run(); });
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // Readable when there is a reading that take() has not returned yet, or an error.
  int descriptor() const { return news_.get(); }

  // Returns the samples since the last call. Throws the error that ended the thread.
  std::vector<monitor::MachineReading> take() {
    uint64_t ignored = 0;
    [[maybe_unused]] const auto read = ::read(news_.get(), &ignored, sizeof(ignored));
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return std::exchange(news_readings_, {});
  }

  // True when all requested samples are taken and returned by take().
  bool is_complete() {
    const std::lock_guard lock(mutex_);
    return complete_ && news_readings_.empty();
  }

  // Valid after stop().
  const monitor::Summary& summary() const { return sampler_.summary(); }
  std::vector<monitor::HostGap> host_gaps() const { return sampler_.host_gaps(); }
  monitor::SamplerCost cost() const {
    monitor::SamplerCost cost = sampler_.cost();
    cost.cpu_seconds = cpu_seconds() - cpu_begin_;
    return cost;
  }

 private:
  void look() {
    monitor::MachineReading reading = sampler_.take();
    const int64_t ticks = sampler_.cost().ticks;
    // Rates need two samples: from then on it is certain which metrics stay blank.
    if (recorder_ != nullptr && ticks == 2)
      recorder_->write_meta(reader_, sampler_.host_gaps(), nullptr);
    {
      const std::lock_guard lock(mutex_);
      news_readings_.push_back(std::move(reading));
      complete_ = ticks == most_looks_;
    }
    tell();
  }

  void tell() const {
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(news_.get(), &one, sizeof(one));
  }

  void run() {
    try {
      const auto interval =
          std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(interval_s_));
      Clock::time_point next = sampler_.begin();
      std::unique_lock lock(mutex_);
      while (!complete_) {
        // Samples that a slow driver delayed are skipped, not made up for.
        while (next <= Clock::now()) next += interval;
        if (wake_.wait_until(lock, next, [this] { return stopping_; })) return;
        lock.unlock();
        look();
        lock.lock();
      }
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
      }
      tell();
    }
  }

  monitor::DeviceReader& reader_;
  monitor::Recorder* recorder_;
  monitor::DeviceSampler sampler_;
  double interval_s_;
  int64_t most_looks_;  // 0 = no bound
  Descriptor news_;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool complete_ = false;
  std::exception_ptr error_;
  std::vector<monitor::MachineReading> news_readings_;
  double cpu_begin_ = 0;
};

// Terminal mode for the view: keys arrive one by one, and the old text is restored at the end.
class TerminalMode {
 public:
  TerminalMode() {
    has_keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_keys_) {
      termios mode = before_;
      mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      mode.c_cc[VMIN] = 0;
      mode.c_cc[VTIME] = 0;
      ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
    }
    write("\x1b[?1049h\x1b[?25l");
  }
  ~TerminalMode() {
    write("\x1b[?25h\x1b[?1049l");
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  TerminalMode(const TerminalMode&) = delete;
  TerminalMode& operator=(const TerminalMode&) = delete;

  bool has_keys() const { return has_keys_; }

  static monitor::ScreenSize size() {
    const TerminalSize found = terminal_size(STDOUT_FILENO);
    if (found.rows == 0) return {};
    return {.columns = static_cast<int>(found.columns), .rows = static_cast<int>(found.rows)};
  }

  static void draw(const std::vector<std::string>& lines) {
    std::string text = "\x1b[H";
    for (size_t at = 0; at < lines.size(); ++at)
      text += lines[at] + "\x1b[K" + (at + 1 < lines.size() ? "\r\n" : "");
    write(text + "\x1b[J");
  }

 private:
  static void write(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }

  termios before_{};
  bool has_keys_ = false;
};

// Shows samples until the time is over, a signal arrives, or a key ends it.
class MonitorRun {
 public:
  MonitorRun(const Context& context, const MonitorFlags& flags, Watch& watch)
      : context_(context),
        flags_(flags),
        watch_(watch),
        signals_(processes::default_stop_signals()),
        end_(flags.duration > 0 ? Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                     std::chrono::duration<double>(flags.duration))
                                : Clock::time_point::max()) {}

  void lines() {
    while (wait(-1)) show_lines(watch_.take());
    show_lines(watch_.take());
  }

  void screen(const std::string& title) {
    const TerminalMode terminal;
    monitor::Screen screen(title);
    const bool color = context_.use_color(STDOUT_FILENO);
    bool paused = false;
    monitor::ScreenSize size = TerminalMode::size();
    do {
      const std::vector<monitor::MachineReading> readings = watch_.take();
      if (!paused)
        for (const monitor::MachineReading& reading : readings) screen.add(reading);
      size = TerminalMode::size();
      TerminalMode::draw(screen.lines(size, color, paused));
      char key = 0;
      while (terminal.has_keys() && ::read(STDIN_FILENO, &key, 1) == 1) {
        if (key == 'q' || key == 'Q') return;
        if (key == 'p' || key == 'P') paused = !paused;
      }
    } while (wait(terminal.has_keys() ? STDIN_FILENO : -1));
  }

 private:
  // Waits until there is something to show, a key or a new terminal size. Returns false at the end.
  bool wait(int keys) {
    const monitor::ScreenSize size = TerminalMode::size();
    for (;;) {
      const double left =
          end_ == Clock::time_point::max() ? 1 : seconds_between(Clock::now(), end_);
      if (left <= 0 || signals_.asked_to_stop() || watch_.is_complete()) return false;
      std::array<pollfd, 3> watched = {{{signals_.descriptor(), POLLIN, 0},
                                        {watch_.descriptor(), POLLIN, 0},
                                        {keys, POLLIN, 0}}};
      constexpr double kLongest = 0.25;  // most seconds between two reads of the terminal's size
      const int ms = static_cast<int>(std::min(left, keys < 0 ? 1.0 : kLongest) * 1000) + 1;
      if (::poll(watched.data(), watched.size(), ms) > 0 && watched[0].revents == 0) return true;
      const monitor::ScreenSize now = TerminalMode::size();
      if (keys >= 0 && (now.columns != size.columns || now.rows != size.rows)) return true;
    }
  }

  void show_lines(const std::vector<monitor::MachineReading>& readings) {
    constexpr int kHeadingEvery = 20;
    for (const monitor::MachineReading& reading : readings) {
      if (!flags_.dmon) continue;
      if (shown_++ % kHeadingEvery == 0) fmt::print("{}", monitor::dmon_heading());
      fmt::print("{}", monitor::dmon_rows(reading));
      if (std::fflush(stdout) != 0)
        throw IoError("stdout could not be written", {.hint = "is the pipe closed?"});
    }
  }

  const Context& context_;
  const MonitorFlags& flags_;
  Watch& watch_;
  processes::SignalStream signals_;
  Clock::time_point end_;
  int shown_ = 0;
};

bool has_screen() {
  return ::isatty(STDOUT_FILENO) == 1 && environment_variable("TERM").value_or("dumb") != "dumb";
}

std::string value_or_empty(const std::map<std::string, std::string>& environment,
                           const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

int run_monitor(Context& context, const std::vector<std::string>& arguments) {
  MonitorFlags flags;
  const std::vector<std::string> rest = context.parse(flags, arguments);
  if (!rest.empty())
    throw ConfigError(fmt::format("gpus watch takes flags only, found `{}`", rest[0]),
                      {.hint = "--interval SECONDS and --count N say how often to look"});
  if (flags.schema != "v1" && flags.format != "csv")
    throw ConfigError(fmt::format("--schema seed is a CSV, found --format {}", flags.format),
                      {.hint = "leave --format out, or take --schema v1"});
  if (flags.schema == "seed" && flags.output.empty()) flags.output = "gpu_usage.csv";
  const auto environment = config::process_environment();
  const monitor::DeviceSources sources = monitor::device_sources(environment);
  const VisibleGpus visible = visible_gpus(sources, environment, flags.all);
  monitor::DeviceReader reader(sources, visible.uuids);

  const bool rows_on_stdout = flags.output.empty() && !flags.dmon;
  const bool screen = !flags.dmon && has_screen() && !context.common.json;
  monitor::RecorderOptions options{
      .output = flags.output,
      .format = flags.format,
      .schema = flags.schema,
      .interval_s = flags.interval,
      .identity = {.run_id = value_or_empty(environment, "TORCHELASTIC_RUN_ID"),
                   .host = telemetry::host_name(),
                   .rank = value_or_empty(environment, "RANK")}};
  std::optional<monitor::Recorder> recorder;
  const bool rows_are_shown = rows_on_stdout && !screen && !context.common.json;
  if (!flags.output.empty() || rows_are_shown) recorder.emplace(options, context.log());

  Watch watch(reader, sources, recorder ? &*recorder : nullptr, flags);
  const double look_s = watch.first_look();
  // An interval shorter than twice the sampling time would mostly measure the sampling itself.
  if (flags.interval < 2 * look_s) {
    watch.set_interval(2 * look_s);
    context.log().warning(fmt::format("a sample takes {:.0f} ms here, so the interval is {:.0f} ms",
                                      1000 * look_s, 2000 * look_s));
  }
  if (!reader.problem().empty())
    context.log().info(fmt::format("no GPU is watched: {}", reader.problem()));
  if (!flags.output.empty())
    context.log().info(fmt::format("writing {} every {:g} s", flags.output, flags.interval));
  MonitorRun run(context, flags, watch);
  watch.start();
  if (screen)
    run.screen(
        fmt::format("convoy gpus watch  {}  every {:g} s", options.identity.host, flags.interval));
  else
    run.lines();
  watch.stop();
  const monitor::SamplerCost cost = watch.cost();
  if (recorder) recorder->write_meta(reader, watch.host_gaps(), watch.summary().json(cost));
  if (context.common.json)
    fmt::print("{}\n", watch.summary().json(cost).dump(2));
  else
    context.log().info(trimmed(watch.summary().text(cost), "\n"));
  return 0;
}

}  // namespace

Command gpus_watch_action() {
  return {.name = "watch",
          .summary = "Watch GPUs and host, live or into a file",
          .usage =
              "convoy gpus watch [--interval S] [--duration S] [--count N] [--output F] [--format "
              "csv|jsonl|prom] "
              "[--schema v1|seed] [--dmon]",
          .examples =
              "convoy gpus watch\n"
              "convoy gpus watch --interval 5 --output gpu_usage_multi.csv\n"
              "convoy gpus watch --dmon --duration 60",
          .flags = {flags_of<MonitorFlags>()},
          .run = run_monitor};
}

}  // namespace convoy::apps
