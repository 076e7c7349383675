// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/fault_report.h"

#include <execinfo.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <string>

#include "simulated_device/machine.h"

namespace convoy::simulated {
namespace {

struct sigaction previous;

const char* kind_of_access([[maybe_unused]] void* context) {
#ifdef __x86_64__
  // Bit 1 of the page fault's error code is set if the access was a write.
  const auto error = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR];
  return (error & 2) != 0 ? "write" : "read";
#else
  return "access";
#endif
}

// The host itself caused the fault at this instruction, so building a text is safe here unless the
// allocator caused it.
void report(int signal, siginfo_t* info, void* context) {
  const bool is_sent = info->si_code <= 0;
  const std::string what = is_sent ? "" : machine().describe_forbidden(info->si_addr);
  if (what.empty()) {
    ::sigaction(signal, &previous, nullptr);
    if (is_sent) ::raise(signal);  // a fault returns when the instruction is repeated
    return;
  }
  const std::string text = std::string("\nhost ") + kind_of_access(context) + " of " + what + "\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  std::array<void*, 32> frames;
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  ::backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
  ::signal(signal, SIG_DFL);
}

}  // namespace

void report_faults() {
  std::array<void*, 1> frame;
  ::backtrace(frame.data(), 1);  // loads its library now, which a handler should not do
  struct sigaction action = {};
  action.sa_sigaction = &report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGSEGV, &action, &previous);
}

}  // namespace convoy::simulated
