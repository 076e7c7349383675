// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/run_child.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "convoy/core/base/error.h"

namespace convoy::processes {
namespace {

using Clock = std::chrono::steady_clock;

// The rest of the limit, but at most a second and at least one millisecond.
int wait_milliseconds(Clock::time_point begin, Seconds limit) {
  constexpr Seconds kLongest{1};
  const Seconds spent = Clock::now() - begin;
  const Seconds left = limit <= Seconds(0) ? kLongest : limit - spent;
  return static_cast<int>(1000 * std::clamp(left, Seconds(0), kLongest).count()) + 1;
}

// A file without a name that holds `text`, read from its start. Unlike a pipe, it blocks nobody
// when a program does not read all of it.
Descriptor memory_file(const std::string& text) {
  Descriptor file(::memfd_create("convoy-input", MFD_CLOEXEC));
  for (size_t done = 0; file.open() && done < text.size();) {
    const ssize_t written = ::write(file.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR)
      throw IoError("the input of a program does not fit into memory",
                    {.hint = "free memory of this machine"});
    done += static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
  if (!file.open() || ::lseek(file.get(), 0, SEEK_SET) != 0)
    throw IoError(fmt::format("no memory file: {}", std::strerror(errno)),
                  {.hint = "raise the limit of open files (ulimit -n, LimitNOFILE)"});
  return file;
}

}  // namespace

bool listen_to(ChildProcess& child, Seconds limit, const TakeText& output, const TakeText& errors) {
  const auto begin = Clock::now();
  bool timed_out = false;
  for (bool exited = false; !exited;) {
    std::array<pollfd, 3> polled = {{{child.exited.get(), POLLIN, 0},
                                     {child.output.get(), POLLIN, 0},
                                     {child.errors.get(), POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), wait_milliseconds(begin, limit));
    exited = polled[0].revents != 0;
    if (!exited && !timed_out && limit > Seconds(0) && Clock::now() - begin >= limit) {
      timed_out = true;
      signal_group(child.pid, SIGKILL);
    }
    if (const std::string text = read_available(child.output); !text.empty()) output(text);
    if (const std::string text = read_available(child.errors); !text.empty()) errors(text);
  }
  return timed_out;
}

ChildResult finish_child(ChildProcess& child, Seconds limit) {
  ChildResult result;
  result.timed_out = listen_to(
      child, limit, [&](std::string_view text) { result.output += text; },
      [&](std::string_view text) { result.errors += text; });
  result.end = wait_for_child(child.pid);
  child.pid = -1;
  return result;
}

ChildResult run_child(ChildStart start, const std::string& input, Seconds limit) {
  const Descriptor file = input.empty() ? Descriptor() : memory_file(input);
  if (file.open()) start.input = file.get();
  ChildProcess child = start_child(start);
  return finish_child(child, limit);
}

}  // namespace convoy::processes
