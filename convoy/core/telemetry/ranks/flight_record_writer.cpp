// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/ranks/flight_record_writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "convoy/core/telemetry/environment.h"
#include "convoy/core/telemetry/ranks/flight_record_layout.h"
#include "convoy/core/telemetry/ranks/step_trace.h"

namespace convoy::telemetry {
namespace {

using flight_layout::Life;
using flight_layout::Slot;

constexpr std::chrono::milliseconds kBeatInterval{250};
constexpr auto kRelease = std::memory_order_release;

uint64_t beat_clock_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

uint64_t packed(std::string_view text) {
  uint64_t word = 0;
  // memcpy accepts no null pointer, not even for an empty text.
  text.copy(reinterpret_cast<char*>(&word), sizeof(word));
  return word;
}

void store_text(flight_layout::Word (&words)[2], std::string_view text) {
  text = text.substr(0, 15);
  words[0].store(packed(text), kRelease);
  words[1].store(text.size() > 8 ? packed(text.substr(8)) : 0, kRelease);
}

// The pages behind `descriptor`, or null when it is anything else: the variable may be inherited
// from an unrelated environment, and the number may be any open file.
flight_layout::Pages* map_pages(int descriptor) {
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals) return nullptr;
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || info.st_size != sizeof(flight_layout::Pages))
    return nullptr;
  void* const memory = ::mmap(nullptr, sizeof(flight_layout::Pages), PROT_READ | PROT_WRITE,
                              MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const pages = static_cast<flight_layout::Pages*>(memory);
  const flight_layout::Head& head = pages->head;
  if (head.magic == flight_layout::kMagic && head.version == flight_layout::kVersion &&
      head.total_bytes == sizeof(*pages) && head.num_slots == flight_layout::kNumSlots)
    return pages;
  ::munmap(memory, sizeof(*pages));
  return nullptr;
}

// A program that the rank started may have inherited the variable: the first living process keeps
// the pages.
bool claim(flight_layout::Head& head) {
  const auto own = static_cast<uint64_t>(::getpid());
  uint64_t owner = head.pid;
  if (owner == own) return false;
  if (owner != 0 && head.life == static_cast<uint64_t>(Life::Attached)) {
    const bool alive = ::kill(static_cast<pid_t>(owner), 0) == 0 || errno != ESRCH;
    if (alive) return false;
  }
  return head.pid.compare_exchange_strong(owner, own);
}

}  // namespace

struct FlightWriter::Pages {
  explicit Pages(flight_layout::Pages* mapped) : shared(mapped) {
    shared->head.beat_ns = beat_clock_ns();
    shared->head.life = static_cast<uint64_t>(Life::Attached);
    start_beating();
  }
  ~Pages() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    if (beater.joinable()) beater.join();
    shared->head.life = static_cast<uint64_t>(Life::Ended);
    ::munmap(shared, sizeof(*shared));
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void start_beating() {
    // Signals are handled by the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      beater = std::thread([this] { beat(); });
      pthread_setname_np(beater.native_handle(), "flight-beat");
    } catch (const std::system_error&) {
      // Without a thread there are no heartbeats: the record is ended, so that the rank is not
      // diagnosed as silent.
      shared->head.life = static_cast<uint64_t>(Life::Ended);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void beat() {
    std::unique_lock lock(mutex);
    while (!stop) {
      shared->head.beat_ns.store(beat_clock_ns(), kRelease);
      shared->head.num_beats.fetch_add(1, kRelease);
      wake.wait_for(lock, kBeatInterval, [this] { return stop; });
    }
  }

  // Null once a later record has taken the slot.
  Slot* slot_of(uint64_t number) const {
    Slot& slot = shared->slots[number % flight_layout::kNumSlots];
    return slot.version.load(std::memory_order_acquire) == 2 * number + 2 ? &slot : nullptr;
  }

  void leave(uint64_t number, bool with_failure) const {
    shared->head.waiting_since_ns.store(0, kRelease);
    if (Slot* const slot = slot_of(number))
      slot->left.store(2 * beat_clock_ns() + (with_failure ? 1 : 0), kRelease);
  }

  flight_layout::Pages* shared;
  std::mutex mutex;
  std::condition_variable wake;
  bool stop = false;
  std::thread beater;
};

FlightWriter::FlightWriter() = default;
FlightWriter::FlightWriter(std::unique_ptr<Pages> pages) : pages_(std::move(pages)) {}
FlightWriter::FlightWriter(FlightWriter&&) noexcept = default;
FlightWriter& FlightWriter::operator=(FlightWriter&&) noexcept = default;
FlightWriter::~FlightWriter() = default;

FlightWriter FlightWriter::attach() {
  const int descriptor = read_environment().flight_descriptor;
  if (descriptor < 0) return {};
  flight_layout::Pages* const mapped = map_pages(descriptor);
  if (mapped == nullptr) return {};
  if (!claim(mapped->head)) {
    ::munmap(mapped, sizeof(*mapped));
    return {};
  }
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return FlightWriter(std::make_unique<Pages>(mapped));
}

void FlightWriter::set_step(int64_t completed_steps) {
  if (pages_) pages_->shared->head.step.store(static_cast<uint64_t>(completed_steps + 1), kRelease);
  if (trace_ != nullptr) trace_->set_step(completed_steps);
}

void FlightWriter::set_checkpoint_step(int64_t step) {
  if (pages_) pages_->shared->head.checkpoint_step.store(static_cast<uint64_t>(step + 1), kRelease);
}

void FlightWriter::set_phase(std::string_view word) {
  if (pages_) pages_->shared->head.phase.store(packed(word), kRelease);
  if (trace_ != nullptr) trace_->set_phase(word);
}

uint64_t FlightWriter::enter(const Collective& collective) {
  uint64_t number = 0;
  if (pages_)
    number = pages_->shared->head.next_number.fetch_add(1, kRelease);
  else if (trace_ != nullptr)
    number = trace_->next_number();
  if (trace_ != nullptr) trace_->enter(number, collective);
  if (pages_) write_record(number, collective);
  return number;
}

void FlightWriter::write_record(uint64_t number, const Collective& collective) {
  Slot& slot = pages_->shared->slots[number % flight_layout::kNumSlots];
  slot.version.store(2 * number + 1, kRelease);
  slot.sequence.store(static_cast<uint64_t>(collective.sequence), kRelease);
  slot.entered_ns.store(beat_clock_ns(), kRelease);
  slot.waited_ns.store(0, kRelease);
  slot.left.store(0, kRelease);
  slot.num_elements.store(static_cast<uint64_t>(collective.num_elements), kRelease);
  slot.bytes.store(static_cast<uint64_t>(collective.bytes), kRelease);
  for (size_t dim = 0; dim < collective.shape.size(); ++dim)
    slot.shape[dim].store(static_cast<uint64_t>(collective.shape[dim]), kRelease);
  store_text(slot.operation, collective.operation);
  store_text(slot.group, collective.group);
  slot.dtype.store(packed(collective.dtype), kRelease);
  slot.sizes.store(static_cast<uint64_t>(static_cast<uint32_t>(collective.group_size)) << 32 |
                       static_cast<uint32_t>(collective.num_dims),
                   kRelease);
  slot.version.store(2 * number + 2, kRelease);
}

void FlightWriter::wait(uint64_t number) {
  trace_wait(number);
  record_wait(number);
}

void FlightWriter::done(uint64_t number) {
  record_done(number);
  trace_done(number);
}

void FlightWriter::trace_wait(uint64_t number) {
  if (trace_ != nullptr) trace_->wait(number);
}

void FlightWriter::trace_done(uint64_t number) {
  if (trace_ != nullptr) trace_->done(number);
}

void FlightWriter::record_wait(uint64_t number) {
  if (!pages_) return;
  const uint64_t now = beat_clock_ns();
  if (Slot* const slot = pages_->slot_of(number)) slot->waited_ns.store(now, kRelease);
  pages_->shared->head.waiting_since_ns.store(now, kRelease);
}

void FlightWriter::record_done(uint64_t number) {
  if (pages_) pages_->leave(number, /*with_failure=*/false);
}

void FlightWriter::arrived(uint64_t number) {
  if (trace_ != nullptr) trace_->arrived(number);
}

void FlightWriter::failed(uint64_t number) {
  if (pages_) pages_->leave(number, /*with_failure=*/true);
}

}  // namespace convoy::telemetry
