// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/conversation/typed_text.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "convoy/core/base/error.h"

namespace convoy::recipes {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

// An eventfd. A signal handler writes it, so it cannot be an object that is passed. A flag would
// not do: a signal between the test of the flag and the read, or in another thread, would leave the
// read waiting.
std::atomic<int> interrupts{-1};

void note_interrupt(int) {
  const int before = errno;
  const uint64_t one = 1;
  // A write fails only when the counter is full, and then the event is readable already.
  [[maybe_unused]] const ssize_t count = ::write(interrupts, &one, sizeof(one));
  errno = before;
}

}  // namespace

bool take_interrupt() {
  uint64_t count = 0;
  return ::read(interrupts, &count, sizeof(count)) == sizeof(count);
}

InterruptKey::InterruptKey() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!event_.open())
    throw IoError(fmt::format("an eventfd could not be made: {}", std::strerror(errno)),
                  {.hint = "raise the limit of open files: ulimit -n 4096"});
  interrupts = event_.get();
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  ::sigaction(SIGINT, &action, &before_);
}

InterruptKey::~InterruptKey() {
  ::sigaction(SIGINT, &before_, nullptr);
  interrupts = -1;
}

std::optional<std::string> TypedText::next() {
  for (std::string text, line;;) {
    Read read = next_line("> ", text);
    if (read == Read::Interrupt) continue;
    if (read == Read::End) return std::nullopt;
    if (!text.starts_with(kQuotes)) return text;
    text.erase(0, kQuotes.size());
    while (read == Read::Line && !text.ends_with(kQuotes)) {
      read = next_line("... ", line);
      if (read == Read::Line) text += (text.empty() ? "" : "\n") + line;
    }
    if (read == Read::Interrupt) continue;
    if (text.ends_with(kQuotes)) text.resize(text.size() - kQuotes.size());
    if (text.ends_with('\n')) text.pop_back();  // the quotes had a line of their own
    return text;
  }
}

TypedText::Read TypedText::next_line(const char* prompt, std::string& line) {
  if (shows_prompts_) fmt::print(stderr, "{}", prompt);
  const Read read = read_line(line);
  if (shows_prompts_ && read != Read::Line) fmt::print(stderr, "\n");
  return read;
}

// Reads without std::cin, which stays failed after an interrupted read.
TypedText::Read TypedText::read_line(std::string& line) {
  for (;;) {
    const size_t end = pending_.find('\n');
    if (end != std::string::npos) return take(end, end + 1, line);
    pollfd sources[] = {{STDIN_FILENO, POLLIN, 0}, {interrupts, POLLIN, 0}};
    ::poll(sources, std::size(sources), -1);
    if (take_interrupt()) {
      pending_.clear();
      return Read::Interrupt;
    }
    if (sources[0].revents == 0) continue;
    char bytes[4096];
    const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw IoError(fmt::format("stdin cannot be read: {}", std::strerror(errno)),
                    {.hint = "start it in a terminal, or give --prompts FILE"});
    if (count > 0)
      pending_.append(bytes, static_cast<size_t>(count));
    else
      return pending_.empty() ? Read::End : take(pending_.size(), pending_.size(), line);
  }
}

TypedText::Read TypedText::take(size_t end, size_t next, std::string& line) {
  line = pending_.substr(0, end);
  if (line.ends_with('\r')) line.pop_back();
  pending_.erase(0, next);
  return Read::Line;
}

}  // namespace convoy::recipes
