// SPDX-License-Identifier: Apache-2.0
//
// How fast the output of ranks is routed, against `cat` that copies the same bytes from the same
// pipes to the same kind of files. Compare figures of one run only.
//   logs_bench [FOLDER]     files are written there, default: the folder for temporary files
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "convoy/core/base/descriptor.h"
#include "convoy/launch/logs/log_router.h"

namespace convoy::launch {
namespace {

namespace fs = std::filesystem;
constexpr size_t kBytesPerRank = 128 << 20;
constexpr size_t kWriteBytes = 8 << 10;
constexpr size_t kLineBytes = 100;

struct Cost {
  double seconds = 0;
  double cpu_seconds = 0;  // used by the program that moves the bytes
};

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// A rank that writes lines as fast as they are taken. `same` = every rank writes the same lines.
pid_t start_writer(int rank, bool same, int descriptor) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  std::string block;
  for (size_t line = 0; block.size() < kWriteBytes; ++line)
    block += fmt::format("{:0{}}\n", (same ? 0 : rank * 1'000'000) + static_cast<int>(line),
                         kLineBytes - 1);
  for (size_t left = kBytesPerRank; left > 0;) {
    const ssize_t written = ::write(descriptor, block.data(), std::min(left, block.size()));
    if (written <= 0) ::_exit(1);
    left -= static_cast<size_t>(written);
  }
  ::_exit(0);
}

void route(std::vector<Pipe>& pipes, const LogOptions& options) {
  LogRouter router(options);
  std::vector<pollfd> watched(pipes.size());
  size_t open = pipes.size();
  std::vector<char> bytes(64 << 10);
  while (open > 0) {
    for (size_t rank = 0; rank < pipes.size(); ++rank) {
      const bool reads = router.accepts(static_cast<int>(rank), Stream::Output);
      watched[rank] = {reads ? pipes[rank].read_end.get() : -1, POLLIN, 0};
    }
    for (const int console : router.waiting_consoles()) watched.push_back({console, POLLOUT, 0});
    ::poll(watched.data(), watched.size(), 100);
    watched.resize(pipes.size());
    for (size_t rank = 0; rank < pipes.size(); ++rank) {
      if (watched[rank].fd < 0 || watched[rank].revents == 0) continue;
      const ssize_t size = ::read(watched[rank].fd, bytes.data(), bytes.size());
      if (size > 0) {
        router.take(static_cast<int>(rank), Stream::Output,
                    {bytes.data(), static_cast<size_t>(size)});
        continue;
      }
      router.finish(static_cast<int>(rank));
      pipes[rank].read_end.reset();
      --open;
    }
    router.handle_deadline();
  }
  router.close();
}

Cost measure(int ranks, bool same, const std::function<void(std::vector<Pipe>&)>& move_bytes) {
  std::vector<Pipe> pipes;
  std::vector<pid_t> writers;
  for (int rank = 0; rank < ranks; ++rank) {
    pipes.push_back(make_pipe());
    writers.push_back(start_writer(rank, same, pipes.back().write_end.get()));
    pipes.back().write_end.reset();
  }
  const auto begin = std::chrono::steady_clock::now();
  // The mover of bytes is a process of its own; its cost includes that of its children.
  const pid_t mover = ::fork();
  if (mover == 0) {
    move_bytes(pipes);
    ::_exit(0);
  }
  pipes.clear();
  int status = 0;
  rusage usage{};
  ::wait4(mover, &status, 0, &usage);
  Cost cost;
  cost.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  for (const pid_t writer : writers) ::waitpid(writer, nullptr, 0);
  cost.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  return cost;
}

// Starts one cat per rank, which writes to FOLDER/RANK.
void copy_with_cat(std::vector<Pipe>& pipes, const fs::path& folder) {
  std::vector<pid_t> cats;
  for (size_t rank = 0; rank < pipes.size(); ++rank) {
    cats.push_back(::fork());
    if (cats.back() != 0) continue;
    const fs::path file = folder / std::to_string(rank);
    ::dup2(pipes[rank].read_end.get(), STDIN_FILENO);
    ::dup2(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644), STDOUT_FILENO);
    ::execlp("cat", "cat", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  pipes.clear();
  for (const pid_t cat : cats) ::waitpid(cat, nullptr, 0);
}

void row(const std::string& name, int ranks, const Cost& cost, const Cost& reference) {
  const double mib = static_cast<double>(ranks) * static_cast<double>(kBytesPerRank) / (1 << 20);
  fmt::print("{:<44}{:>5}{:>10.0f}{:>10.2f}{:>10.2f}\n", name, ranks, mib / cost.seconds,
             reference.seconds / cost.seconds, cost.cpu_seconds / mib * 1000);
}

int run(const fs::path& folder) {
  ::signal(SIGPIPE, SIG_IGN);
  fmt::print("{:<44}{:>5}{:>10}{:>10}{:>10}\n", "", "ranks", "MiB/s", "of cat", "CPU ms/MiB");
  const int null = ::open("/dev/null", O_WRONLY);
  for (const int ranks : {1, 4}) {
    const Cost cat =
        measure(ranks, false, [&](std::vector<Pipe>& pipes) { copy_with_cat(pipes, folder); });
    row("cat, to files", ranks, cat, cat);
    const auto routed = [&](const std::string& name, bool same, bool console, bool fold) {
      LogOptions options;
      options.num_local_ranks = ranks;
      options.layout = LogLayout::Torchrun;
      options.folder = folder;
      options.prefix = LinePrefix::HostRank;
      options.host = "host";
      options.timestamps = true;
      options.fold = fold;
      options.console = console ? Console::Prefixed : Console::Silent;
      options.console_output = options.console_errors = null;
      row(name, ranks,
          measure(ranks, same, [&](std::vector<Pipe>& pipes) { route(pipes, options); }), cat);
    };
    routed("router, to files", false, false, false);
    routed("router, to files and the console", false, true, false);
    if (ranks == 1) continue;
    routed("router, the same, folding, nothing to fold", false, true, true);
    routed("router, the same, folding, all lines the same", true, true, true);
  }
  return 0;
}

}  // namespace
}  // namespace convoy::launch

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  std::string name = ((argc > 1 ? fs::path(argv[1]) : fs::temp_directory_path()) / "logs-XXXXXX");
  if (::mkdtemp(name.data()) == nullptr) return 1;
  const int code = convoy::launch::run(name);
  fs::remove_all(name);
  return code;
}
