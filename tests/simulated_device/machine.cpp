// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/machine.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

namespace convoy::simulated {
namespace {

// New memory is filled with this byte, which gives no number in any float type and no valid index,
// so a read of uninitialised memory shows.
constexpr int kPoison = 0xff;

Machine* the_machine = nullptr;
thread_local c10::DeviceIndex thread_device = 0;
thread_local std::map<c10::DeviceIndex, c10::Stream> thread_streams;

}  // namespace

Machine::Machine(int devices) {
  for (int i = 0; i < devices; ++i) memories_.push_back(std::make_unique<Memory>());
}

char* Machine::allocate(c10::DeviceIndex device, size_t bytes) {
  if (bytes == 0) return nullptr;
  char* address = hand_out(device, bytes);
  std::memset(device_view(address), kPoison, bytes);
  return address;
}

char* Machine::hand_out(c10::DeviceIndex device, size_t bytes) {
  const c10::Stream stream = current_stream(device);
  std::unique_lock lock(mutex_);
  // The caller poisons the memory at once, and earlier work of the stream may still use it.
  await(lock, Clock(streams_.clock(streams_.number(stream))));
  Memory& memory = *memories_.at(device);
  MemoryFigures& figures = memory.figures;
  TORCH_CHECK_WITH(OutOfMemoryError,
                   memory.capacity == 0 || figures.live_bytes + bytes <= memory.capacity,
                   "sim:", int{device}, " is out of memory: ", bytes, " bytes wanted, ",
                   figures.live_bytes, " of ", memory.capacity, " in use");
  Block block;
  block.address = memory.arena.allocate(bytes);
  block.bytes = bytes;
  block.device = c10::Device(kDeviceType, device);
  block.stream = streams_.number(stream);
  block.allocated_by = current_op();
  // Work of another stream that uses the block must be ordered after this entry of the block's own
  // stream.
  block.accesses.push_back({streams_.submit(block.stream),
                            block.allocated_by,
                            {block.address, block.address + bytes, true}});
  figures.live_bytes += bytes;
  figures.peak_bytes = std::max(figures.peak_bytes, figures.live_bytes);
  ++figures.allocations;
  return blocks_.add(std::move(block)).address;
}

char* Machine::allocate_pinned(size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  Block block;
  block.address = pinned_.allocate(bytes);
  block.bytes = bytes;
  block.allocated_by = current_op();
  return blocks_.add(std::move(block)).address;
}

bool Machine::release(void* address) {
  if (address == nullptr) return true;
  char* host = host_view(address);
  if (host == nullptr) return false;
  const std::lock_guard lock(mutex_);
  Block* block = blocks_.find(host);
  TORCH_INTERNAL_ASSERT(block != nullptr && block->address == host, "released twice");
  block->released = true;
  if (!block->pending.empty()) return true;
  if (!block->device.is_cpu()) {
    const std::string unfinished = blocks_.unfinished_use(*block, streams_);
    if (!unfinished.empty()) findings_.push_back(unfinished);
  }
  release_block(*block);
  return true;
}

void Machine::release_block(Block& block) {
  char* address = block.address;
  if (block.device.is_cpu()) {
    pinned_.release(address);
  } else {
    Memory& memory = *memories_.at(block.device.index());
    memory.figures.live_bytes -= block.bytes;
    memory.arena.release(address);
  }
  blocks_.remove(address);
}

char* Machine::device_view(const void* address) const {
  for (const auto& memory : memories_)
    if (char* view = memory->arena.device_view(address)) return view;
  return pinned_.device_view(address);
}

char* Machine::host_view(const void* address) const {
  for (const auto& memory : memories_)
    if (char* view = memory->arena.host_view(address)) return view;
  return pinned_.host_view(address);
}

c10::Device Machine::device_of(const void* address) const {
  for (size_t i = 0; i < memories_.size(); ++i)
    if (memories_[i]->arena.in_host_view(address))
      return {kDeviceType, static_cast<c10::DeviceIndex>(i)};
  return c10::kCPU;
}

void Machine::record_stream(const void* address, c10::Stream stream) {
  const std::lock_guard lock(mutex_);
  if (Block* block = blocks_.find(address))
    block->recorded_streams.push_back(streams_.number(stream));
}

MemoryFigures Machine::memory(c10::DeviceIndex device) const {
  const std::lock_guard lock(mutex_);
  return memories_.at(device)->figures;
}

void Machine::reset_peak(c10::DeviceIndex device) {
  const std::lock_guard lock(mutex_);
  MemoryFigures& figures = memories_.at(device)->figures;
  figures.peak_bytes = figures.live_bytes;
}

size_t Machine::capacity(c10::DeviceIndex device) const {
  const std::lock_guard lock(mutex_);
  return memories_.at(device)->capacity;
}

void Machine::set_capacity(c10::DeviceIndex device, size_t bytes) {
  const std::lock_guard lock(mutex_);
  memories_.at(device)->capacity = bytes == 0 ? Arena::kWindowBytes : bytes;
}

Moment Machine::submit(c10::Stream stream, const std::vector<Use>& uses) {
  std::unique_lock lock(mutex_);
  await(lock, Clock(streams_.clock(streams_.number(stream))));
  return enter(stream, uses);
}

Moment Machine::hold(c10::Stream stream, const std::vector<Use>& uses) {
  const std::lock_guard lock(mutex_);
  const Moment moment = enter(stream, uses);
  streams_.hold(moment);
  return moment;
}

bool Machine::is_reached(const Moment& held) const {
  const std::lock_guard lock(mutex_);
  return streams_.is_reached(held);
}

void Machine::let_go(const Moment& held) {
  {
    const std::lock_guard lock(mutex_);
    streams_.let_go(held);
  }
  let_go_.notify_all();
}

void Machine::await(std::unique_lock<std::mutex>& lock, const Clock& clock) {
  let_go_.wait(lock, [&] { return streams_.is_done(clock); });
}

Moment Machine::enter(c10::Stream stream, const std::vector<Use>& uses) {
  if (!findings_.empty()) {
    const std::string finding = findings_.front();
    findings_.erase(findings_.begin());
    TORCH_CHECK(false, "simulated device: ", finding);
  }
  const Moment moment = streams_.submit(streams_.number(stream));
  const OpName op = current_op();
  for (const Use& use : uses) {
    const std::string collision = blocks_.enter({moment, op, use}, streams_);
    TORCH_CHECK(collision.empty(), "simulated device: ", collision);
  }
  return moment;
}

void Machine::guard_pinned(const Moment& moment, const Use& use) {
  const std::lock_guard lock(mutex_);
  Block* block = blocks_.find(use.begin);
  block->pending.push_back({moment, current_op(), use});
  if (block->pending.size() == 1) guarded_.push_back(block->address);
  protect(*block);
}

void Machine::protect(const Block& block) {
  const bool is_written = std::any_of(block.pending.begin(), block.pending.end(),
                                      [](const Access& access) { return access.use.writes; });
  pinned_.protect(block.address, block.pending.empty() ? HostAccess::ReadWrite
                                 : is_written          ? HostAccess::None
                                                       : HostAccess::Read);
}

void Machine::learn(const Clock& clock) {
  streams_.host_learns(clock);
  std::erase_if(guarded_, [&](char* address) {
    Block& block = *blocks_.find(address);
    if (std::erase_if(block.pending, [&](const Access& access) {
          return streams_.host_knows(access.moment);
        }) == 0)
      return false;
    protect(block);
    if (!block.pending.empty()) return false;
    if (block.released) release_block(block);
    return true;
  });
}

void* Machine::native_handle(c10::Stream stream) {
  const std::lock_guard lock(mutex_);
  return reinterpret_cast<void*>(streams_.number(stream) + 1);  // a null handle is no stream
}

c10::Stream Machine::stream_of(void* native_handle) const {
  const std::lock_guard lock(mutex_);
  return streams_.stream(reinterpret_cast<size_t>(native_handle) - 1);
}

c10::Stream Machine::create_stream(c10::DeviceIndex device) {
  const std::lock_guard lock(mutex_);
  return streams_.create(device);
}

void Machine::record(Event& event, c10::Stream stream) {
  const std::lock_guard lock(mutex_);
  const size_t number = streams_.number(stream);
  streams_.submit(number);
  event.clock = streams_.clock(number);
  event.is_asked = false;
  event.recorder = std::this_thread::get_id();
  event.time = std::chrono::steady_clock::now();
}

void Machine::block(const Event& event, c10::Stream stream) {
  const std::lock_guard lock(mutex_);
  streams_.wait(streams_.number(stream), event.clock);
}

bool Machine::query(Event& event) {
  const std::lock_guard lock(mutex_);
  // A query by another thread than the recorder's gives no order to the work of other threads.
  if (event.recorder != std::this_thread::get_id()) return streams_.is_done(event.clock);
  if (streams_.host_knows(event.clock)) return true;
  // The first query is answered with no, so that polling is noticed. A later one is answered with
  // yes, so that a caller's polling ends.
  if (!event.is_asked || !streams_.is_done(event.clock)) {
    if (event.is_asked) count_wait("question");
    event.is_asked = true;
    return false;
  }
  learn(event.clock);
  return true;
}

bool Machine::query(c10::Stream stream) {
  const std::lock_guard lock(mutex_);
  const size_t number = streams_.number(stream);
  const Clock clock = streams_.clock(number);
  if (streams_.host_knows(clock)) return true;
  asked_streams_.resize(std::max(asked_streams_.size(), number + 1));
  if (asked_streams_[number] != clock || !streams_.is_done(clock)) {
    asked_streams_[number] = clock;
    return false;
  }
  learn(clock);
  return true;
}

void Machine::order(c10::Stream earlier, c10::Stream later) {
  const std::lock_guard lock(mutex_);
  const size_t number = streams_.number(earlier);
  streams_.wait(streams_.number(later), streams_.clock(number));
}

void Machine::wait_for_event(const Event& event) {
  std::unique_lock lock(mutex_);
  if (!streams_.host_knows(event.clock)) count_wait("event");
  await(lock, event.clock);
  learn(event.clock);
}

void Machine::wait_for_stream(c10::Stream stream, const char* kind, bool always_waits) {
  std::unique_lock lock(mutex_);
  const size_t number = streams_.number(stream);
  const Clock clock = streams_.clock(number);
  await(lock, clock);
  if (always_waits || !streams_.host_knows(clock)) count_wait(kind);
  learn(clock);
}

void Machine::wait_for_device(c10::DeviceIndex device) {
  std::unique_lock lock(mutex_);
  bool waits = false;
  for (const size_t number : streams_.of_device(device)) {
    const Clock clock = streams_.clock(number);
    await(lock, clock);
    waits = waits || !streams_.host_knows(clock);
    learn(clock);
  }
  if (waits) count_wait("device");
}

void Machine::count_wait(const char* kind) { waits_.push_back({kind, current_op().text()}); }

std::vector<HostWait> Machine::host_waits() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

void Machine::reset_host_waits() {
  const std::lock_guard lock(mutex_);
  waits_.clear();
}

std::vector<std::string> Machine::take_findings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(findings_, {});
}

std::string Machine::describe_forbidden(const void* address) {
  const c10::Device device = device_of(address);
  if (device.is_cpu() && !is_pinned(address)) return "";
  const std::unique_lock lock(mutex_, std::try_to_lock);
  Block* block = lock.owns_lock() ? blocks_.find(address) : nullptr;
  if (!device.is_cpu())
    return c10::str(
        "simulated device memory (",
        block == nullptr ? c10::str(device, ", no block there") : describe(*block, streams_), ")");
  if (block == nullptr || block->pending.empty()) return "";
  const Access& copy = block->pending.back();
  return c10::str("pinned memory that ", copy.op.text(), copy.use.writes ? " writes" : " reads",
                  " on ", streams_.stream(copy.moment.stream), " while nothing has waited for it (",
                  describe(*block, streams_), ")");
}

Machine& machine() {
  TORCH_CHECK(the_machine != nullptr, "simulated device: call simulated::install first");
  return *the_machine;
}

bool is_installed() { return the_machine != nullptr; }

void make_machine(int devices) { the_machine = new Machine(devices); }

c10::DeviceIndex current_device() { return thread_device; }

void set_current_device(c10::DeviceIndex device) {
  TORCH_CHECK(device >= 0 && device < machine().devices(),
              "simulated device: there is no sim:", int{device}, "; this process has ",
              int{machine().devices()});
  thread_device = device;
}

c10::Stream current_stream(c10::DeviceIndex device) {
  const auto found = thread_streams.find(device);
  if (found != thread_streams.end()) return found->second;
  return c10::Stream(c10::Stream::DEFAULT, c10::Device(kDeviceType, device));
}

void set_current_stream(c10::Stream stream) {
  thread_streams.insert_or_assign(stream.device_index(), stream);
}

}  // namespace convoy::simulated
