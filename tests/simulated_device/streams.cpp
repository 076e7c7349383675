// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/streams.h"

#include <algorithm>

namespace convoy::simulated {
namespace {

uint64_t step_of(const Clock& clock, size_t stream) {
  return stream < clock.size() ? clock[stream] : 0;
}

void join(Clock& clock, const Clock& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

bool is_same(const Moment& left, const Moment& right) {
  return left.stream == right.stream && left.step == right.step;
}

}  // namespace

size_t Streams::number(c10::Stream stream) {
  const auto [entry, is_new] =
      numbers_.try_emplace({stream.device_index(), stream.id()}, streams_.size());
  if (is_new) streams_.push_back({stream, {}});
  return entry->second;
}

c10::Stream Streams::create(c10::DeviceIndex device) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::PrivateUse1, device),
                     ++last_id_[device]);
}

Moment Streams::submit(size_t stream) {
  Clock& clock = streams_[stream].clock;
  join(clock, host_);
  clock.resize(std::max(clock.size(), stream + 1));
  return {stream, ++clock[stream]};
}

void Streams::wait(size_t stream, const Clock& clock) { join(streams_[stream].clock, clock); }

bool Streams::is_before(const Moment& moment, size_t stream) const {
  return step_of(streams_[stream].clock, moment.stream) >= moment.step;
}

bool Streams::is_known_to_all(const Moment& moment) const {
  return host_knows(moment) ||
         std::all_of(streams_.begin(), streams_.end(), [&](const Entry& entry) {
           return step_of(entry.clock, moment.stream) >= moment.step;
         });
}

bool Streams::host_knows(const Moment& moment) const {
  return step_of(host_, moment.stream) >= moment.step;
}

bool Streams::host_knows(const Clock& clock) const {
  for (size_t i = 0; i < clock.size(); ++i)
    if (step_of(host_, i) < clock[i]) return false;
  return true;
}

void Streams::host_learns(const Clock& clock) { join(host_, clock); }

std::vector<size_t> Streams::of_device(c10::DeviceIndex device) const {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < streams_.size(); ++i)
    if (streams_[i].stream.device_index() == device) numbers.push_back(i);
  return numbers;
}

void Streams::hold(const Moment& moment) { held_.push_back({moment, clock(moment.stream)}); }

void Streams::let_go(const Moment& moment) {
  std::erase_if(held_, [&](const Held& held) { return is_same(held.moment, moment); });
}

bool Streams::is_done(const Clock& clock) const {
  return std::none_of(held_.begin(), held_.end(), [&](const Held& held) {
    return step_of(clock, held.moment.stream) >= held.moment.step;
  });
}

bool Streams::is_reached(const Moment& moment) const {
  const auto own = std::find_if(held_.begin(), held_.end(),
                                [&](const Held& held) { return is_same(held.moment, moment); });
  return own == held_.end() || std::none_of(held_.begin(), held_.end(), [&](const Held& held) {
           return !is_same(held.moment, moment) &&
                  step_of(own->clock, held.moment.stream) >= held.moment.step;
         });
}

}  // namespace convoy::simulated
