// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "convoy/base/error.h"

namespace convoy::launch {

SignalStream::SignalStream() {
  sigset_t read;
  sigemptyset(&read);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE})
    sigaddset(&read, signal);
  pthread_sigmask(SIG_BLOCK, &read, &before_);
  stream_ = Descriptor(::signalfd(-1, &read, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!stream_.open()) {
    const int number = errno;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    throw IoError(fmt::format("signals could not be read: {}", std::strerror(number)));
  }
}

SignalStream::~SignalStream() {
  while (next()) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalStream::next() {
  signalfd_siginfo info{};
  if (::read(stream_.get(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace convoy::launch
