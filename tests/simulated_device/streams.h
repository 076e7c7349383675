// SPDX-License-Identifier: Apache-2.0
//
// The order of work: vector clocks of streams, which are joined by events and by waits of the host.
// Work runs at the time of its call, so these clocks define the order and not the time. Not
// thread-safe.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <map>
#include <vector>

namespace convoy::simulated {

// For each stream, by its number, the last step that is known to be done.
using Clock = std::vector<uint64_t>;

// A piece of work: step number `step` of a stream.
struct Moment {
  size_t stream = 0;
  uint64_t step = 0;
};

class Streams {
 public:
  // Returns the number of a stream, which is assigned at the first call.
  size_t number(c10::Stream stream);
  c10::Stream stream(size_t number) const { return streams_.at(number).stream; }
  c10::Stream create(c10::DeviceIndex device);

  // Adds work to the end of a stream. The work is ordered after all work that the host knew to be
  // done.
  Moment submit(size_t stream);
  // Orders later work of the stream after the steps in the clock.
  void wait(size_t stream, const Clock& clock);
  const Clock& clock(size_t stream) const { return streams_.at(stream).clock; }
  bool is_before(const Moment& moment, size_t stream) const;
  bool is_known_to_all(const Moment& moment) const;

  bool host_knows(const Moment& moment) const;
  bool host_knows(const Clock& clock) const;
  void host_learns(const Clock& clock);
  std::vector<size_t> of_device(c10::DeviceIndex device) const;

  // Work that is held is not done before let_go(). It must be the last work of its stream.
  void hold(const Moment& moment);
  void let_go(const Moment& moment);
  bool is_done(const Clock& clock) const;
  // Whether all work before the held work is done.
  bool is_reached(const Moment& held) const;

 private:
  struct Entry {
    c10::Stream stream;
    Clock clock;
  };
  struct Held {
    Moment moment;
    Clock clock;
  };
  std::vector<Entry> streams_;
  std::vector<Held> held_;
  std::map<std::pair<c10::DeviceIndex, c10::StreamId>, size_t> numbers_;
  std::map<c10::DeviceIndex, c10::StreamId> last_id_;
  Clock host_;
};

}  // namespace convoy::simulated
