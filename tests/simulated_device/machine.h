// SPDX-License-Identifier: Apache-2.0
//
// The devices, their streams and their memory, which all parts of the backend use. There is one
// object per process, because LibTorch has one backend of this kind per process and calls it by
// free functions. Thread-safe; no call returns with the lock held.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "simulated_device/arena.h"
#include "simulated_device/blocks.h"
#include "simulated_device/simulated_device.h"
#include "simulated_device/streams.h"

namespace convoy::simulated {

inline constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;

struct Event {
  c10::DeviceIndex device = 0;
  Clock clock;
  std::thread::id recorder;
  bool is_asked = false;  // a query was answered with no
  bool is_timed = false;
  std::chrono::steady_clock::time_point time;
};

class Machine {
 public:
  explicit Machine(int devices);

  c10::DeviceIndex devices() const { return static_cast<c10::DeviceIndex>(memories_.size()); }

  // Memory. Returns null for zero bytes.
  char* allocate(c10::DeviceIndex device, size_t bytes);
  char* allocate_pinned(size_t bytes);
  // `address` may be of either view. Returns false if it is not an address of this machine.
  bool release(void* address);
  char* device_view(const void* address) const;
  char* host_view(const void* address) const;
  bool is_pinned(const void* address) const { return pinned_.in_host_view(address); }
  // Returns the device whose memory has this address in the host's view, or the CPU.
  c10::Device device_of(const void* address) const;
  void record_stream(const void* address, c10::Stream stream);
  MemoryFigures memory(c10::DeviceIndex device) const;
  void reset_peak(c10::DeviceIndex device);
  size_t capacity(c10::DeviceIndex device) const;
  void set_capacity(c10::DeviceIndex device, size_t bytes);

  // Work. Each piece of work lists its uses before it runs. Throws if a use is in no order with
  // earlier work, and throws faults that were found since the last piece.
  Moment submit(c10::Stream stream, const std::vector<Use>& uses);
  // Like submit(), for work that runs on a thread of its own from the time it is reached until
  // let_go(). Until then queries are answered with no. Waits for the work, and work that is ordered
  // after it, block.
  Moment hold(c10::Stream stream, const std::vector<Use>& uses);
  bool is_reached(const Moment& held) const;
  void let_go(const Moment& held);
  // The host must not use this pinned memory until it has waited for the work.
  void guard_pinned(const Moment& moment, const Use& use);

  // The order of work.
  c10::Stream create_stream(c10::DeviceIndex device);
  // Converts a stream to the form that the device's libraries take, and back.
  void* native_handle(c10::Stream stream);
  c10::Stream stream_of(void* native_handle) const;
  void record(Event& event, c10::Stream stream);
  void block(const Event& event, c10::Stream stream);
  bool query(Event& event);
  bool query(c10::Stream stream);
  // Later work of `later` is ordered after all earlier work of `earlier`.
  void order(c10::Stream earlier, c10::Stream later);

  // Waits of the host.
  void wait_for_event(const Event& event);
  void wait_for_stream(c10::Stream stream, const char* kind, bool always_waits);
  void wait_for_device(c10::DeviceIndex device);
  std::vector<HostWait> host_waits() const;
  void reset_host_waits();

  std::vector<std::string> take_findings();

  // Describes the host's forbidden access: the block and the work that uses it, or "". Does not
  // block, because a signal handler calls it.
  std::string describe_forbidden(const void* address);

 private:
  struct Memory {
    Arena arena{Arena::Kind::Device};
    MemoryFigures figures;
    size_t capacity = Arena::kWindowBytes;
  };

  char* hand_out(c10::DeviceIndex device, size_t bytes);
  Moment enter(c10::Stream stream, const std::vector<Use>& uses);
  void await(std::unique_lock<std::mutex>& lock, const Clock& clock);
  void learn(const Clock& clock);
  void count_wait(const char* kind);
  void release_block(Block& block);
  void protect(const Block& block);

  mutable std::mutex mutex_;
  std::condition_variable let_go_;
  std::vector<std::unique_ptr<Memory>> memories_;
  Arena pinned_{Arena::Kind::Pinned};
  Blocks blocks_;
  Streams streams_;
  std::vector<char*> guarded_;  // pinned blocks with pending copies
  std::vector<Clock> asked_streams_;
  std::vector<HostWait> waits_;
  std::vector<std::string> findings_;
};

// Returns the machine that install() made. It is never destroyed, because tensors may outlive any
// static object. Throws before install().
Machine& machine();
void make_machine(int devices);

// The device and the stream on which this thread works.
c10::DeviceIndex current_device();
void set_current_device(c10::DeviceIndex device);
c10::Stream current_stream(c10::DeviceIndex device);
void set_current_stream(c10::Stream stream);

}  // namespace convoy::simulated
