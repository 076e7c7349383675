// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/ranks/flight_record_page.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/ranks/flight_record_layout.h"

namespace convoy::telemetry {
namespace {

using flight_layout::Slot;
using flight_layout::Word;

constexpr auto kAcquire = std::memory_order_acquire;

uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

int64_t bounded(uint64_t word, int64_t most = int64_t{1} << 62) {
  return static_cast<int64_t>(std::min(word, static_cast<uint64_t>(most)));
}

// Text from a rank is written to terminals and files, so control characters are replaced.
std::string printable(const uint64_t* words, size_t num_words) {
  std::string text(num_words * sizeof(uint64_t), '\0');
  std::memcpy(text.data(), words, text.size());
  text.resize(std::min(text.find('\0'), text.size()));
  for (char& letter : text)
    if (letter < ' ' || letter > '~' || letter == '"' || letter == '\\') letter = '?';
  return text;
}

int64_t microseconds_ago(uint64_t time_ns, uint64_t now) {
  if (time_ns == 0) return -1;
  return time_ns >= now ? 0 : bounded((now - time_ns) / 1000);
}

// The words of a slot while it held the record `number` throughout; empty when it did not.
std::optional<CollectiveRecord> read_slot(const Slot& slot, uint64_t number, uint64_t now) {
  const uint64_t wanted = 2 * number + 2;
  if (slot.version.load(kAcquire) != wanted) return std::nullopt;
  CollectiveRecord record;
  record.sequence = bounded(slot.sequence.load(kAcquire));
  const uint64_t entered = slot.entered_ns.load(kAcquire);
  const uint64_t waited = slot.waited_ns.load(kAcquire);
  const uint64_t left = slot.left.load(kAcquire);
  record.num_elements = bounded(slot.num_elements.load(kAcquire));
  record.bytes = bounded(slot.bytes.load(kAcquire));
  for (size_t dim = 0; dim < record.shape.size(); ++dim)
    record.shape[dim] = bounded(slot.shape[dim].load(kAcquire));
  const uint64_t operation[2] = {slot.operation[0].load(kAcquire),
                                 slot.operation[1].load(kAcquire)};
  const uint64_t group[2] = {slot.group[0].load(kAcquire), slot.group[1].load(kAcquire)};
  const uint64_t dtype = slot.dtype.load(kAcquire);
  const uint64_t sizes = slot.sizes.load(kAcquire);
  if (slot.version.load(kAcquire) != wanted) return std::nullopt;
  constexpr int kMost = std::numeric_limits<int>::max();
  record.operation = printable(operation, 2);
  record.group = printable(group, 2);
  record.dtype = printable(&dtype, 1);
  record.num_dims = static_cast<int>(bounded(sizes & 0xFFFFFFFF, kMost));
  for (size_t dim = 0; dim < record.shape.size(); ++dim)
    if (dim >= static_cast<size_t>(record.num_dims)) record.shape[dim] = 0;
  record.group_size = static_cast<int>(bounded(sizes >> 32, kMost));
  record.entered_us_ago = microseconds_ago(entered, now);
  record.waited_us_ago = microseconds_ago(waited, now);
  record.left_us_ago = microseconds_ago(left >> 1, now);
  record.state = left != 0     ? (left & 1) != 0 ? CollectiveState::Failed : CollectiveState::Done
                 : waited != 0 ? CollectiveState::Waited
                               : CollectiveState::Entered;
  return record;
}

const flight_layout::Pages& pages_at(const void* memory) {
  return *static_cast<const flight_layout::Pages*>(memory);
}

}  // namespace

FlightPage::FlightPage(int rank) : rank_(rank) {
  constexpr size_t kBytes = sizeof(flight_layout::Pages);
  const auto fail = [&](const char* what) {
    const int number = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    throw IoError(
        fmt::format("no flight record for rank {}: {}: {}", rank, what, std::strerror(number)),
        {.hint = "raise the limits of memory and open files (ulimit -v, ulimit -n)"});
  };
  descriptor_ = ::memfd_create("convoy-flight", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor_ < 0) fail("memfd_create");
  if (::ftruncate(descriptor_, kBytes) != 0) fail("ftruncate");
  if (::fcntl(descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail("sealing");
  memory_ = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory_ == MAP_FAILED) fail("mmap");
  flight_layout::Head& head = static_cast<flight_layout::Pages*>(memory_)->head;
  head.magic = flight_layout::kMagic;
  head.version = flight_layout::kVersion;
  head.total_bytes = kBytes;
  head.num_slots = flight_layout::kNumSlots;
  head.rank = static_cast<uint64_t>(rank);
}

FlightPage::~FlightPage() {
  if (memory_ != nullptr) ::munmap(memory_, sizeof(flight_layout::Pages));
  if (descriptor_ >= 0) ::close(descriptor_);
}

FlightPage::FlightPage(FlightPage&& other) noexcept
    : rank_(other.rank_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      memory_(std::exchange(other.memory_, nullptr)) {}

int64_t FlightPage::waiting_us() const {
  return microseconds_ago(pages_at(memory_).head.waiting_since_ns, now_ns());
}

RankFlight FlightPage::read(size_t max_records) const {
  const flight_layout::Head& head = pages_at(memory_).head;
  RankFlight flight;
  flight.rank = rank_;
  flight.pid = bounded(head.pid, std::numeric_limits<int32_t>::max());
  flight.ended = head.life.load(kAcquire) == static_cast<uint64_t>(flight_layout::Life::Ended);
  flight.num_beats = bounded(head.num_beats);
  flight.step = bounded(head.step) - 1;
  flight.checkpoint_step = bounded(head.checkpoint_step) - 1;
  const uint64_t phase = head.phase;
  flight.phase = printable(&phase, 1);
  const uint64_t next = head.next_number.load(kAcquire);
  flight.num_collectives = bounded(next);
  const uint64_t now = now_ns();
  flight.beat_us_ago = microseconds_ago(head.beat_ns, now);
  uint64_t count = std::min<uint64_t>(flight_layout::kNumSlots, next);
  count = std::min<uint64_t>(count, max_records);
  for (uint64_t number = next - count; number != next; ++number) {
    // Skips only a record that is being written, was torn by the death of its rank, or has just
    // been overwritten.
    if (auto record =
            read_slot(pages_at(memory_).slots[number % flight_layout::kNumSlots], number, now))
      flight.records.push_back(std::move(*record));
  }
  return flight;
}

}  // namespace convoy::telemetry
