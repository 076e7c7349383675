// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "convoy/core/base/error.h"

namespace convoy::processes {

namespace {

bool is_ignored(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler == SIG_IGN;
}

}  // namespace

SignalStream::SignalStream(const std::vector<int>& signals) : signals_(signals) {
  sigset_t read;
  sigemptyset(&read);
  for (const int signal : signals)
    if (signal != SIGHUP || !is_ignored(SIGHUP)) sigaddset(&read, signal);
  for (const int signal : {SIGUSR1, SIGUSR2, SIGPIPE, SIGXFSZ}) sigaddset(&read, signal);
  pthread_sigmask(SIG_BLOCK, &read, &before_);
  for_ranks_ = before_;
  for (int signal = 1; signal < NSIG; ++signal)
    if (sigismember(&read, signal) == 1) sigdelset(&for_ranks_, signal);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &usual, &child_before_);
  stream_ = Descriptor(::signalfd(-1, &read, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!stream_.open()) {
    const int number = errno;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    ::sigaction(SIGCHLD, &child_before_, nullptr);
    throw IoError(fmt::format("signals could not be read: {}", std::strerror(number)),
                  {.hint = "raise the limit of open files (ulimit -n, LimitNOFILE)"});
  }
}

SignalStream::~SignalStream() {
  // Signals that stay blocked are left to the stream around this one. Other signals are dropped;
  // otherwise they would act now.
  sigset_t blocked, released;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  sigemptyset(&released);
  for (int signal = 1; signal < NSIG; ++signal)
    if (sigismember(&blocked, signal) == 1 && sigismember(&before_, signal) == 0)
      sigaddset(&released, signal);
  const timespec at_once{};
  while (::sigtimedwait(&released, nullptr, &at_once) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  ::sigaction(SIGCHLD, &child_before_, nullptr);
}

std::optional<int> SignalStream::next() {
  signalfd_siginfo info{};
  while (::read(stream_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    // PIPE and XFSZ are dropped: the writer gets an error number instead.
    if (signal != SIGPIPE && signal != SIGXFSZ) return signal;
  }
  return std::nullopt;
}

bool SignalStream::asked_to_stop() {
  while (const auto signal = next()) asked_to_stop_ = asked_to_stop_ || contains(signals_, *signal);
  return asked_to_stop_;
}

std::vector<int> default_stop_signals() { return {SIGTERM, SIGINT, SIGHUP, SIGQUIT}; }

std::vector<int> parse_signals(const std::string& names) {
  std::vector<int> signals;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    const std::string bare = name.starts_with("SIG") ? name.substr(3) : name;
    int found = 0;
    for (int signal = 1; signal < NSIG; ++signal) {
      const char* const known = ::sigabbrev_np(signal);
      if (known != nullptr && bare == known) found = signal;
    }
    if (found == 0 || found == SIGKILL || found == SIGSTOP || found == SIGCHLD)
      throw ConfigError(fmt::format("`{}` is no signal that can be handled", name),
                        {.key = "signals_to_handle", .hint = "for example SIGTERM,SIGINT,SIGHUP"});
    signals.push_back(found);
  }
  return signals;
}

bool contains(const std::vector<int>& signals, int signal) {
  return std::find(signals.begin(), signals.end(), signal) != signals.end();
}

std::string signal_name(int signal) {
  const char* const name = ::sigabbrev_np(signal);
  return name == nullptr ? std::to_string(signal) : fmt::format("SIG{}", name);
}

}  // namespace convoy::processes
