// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/device_streams.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace convoy::detail {
namespace {

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

std::vector<c10::Stream> current_streams(const std::vector<c10::Device>& devices) {
  std::vector<c10::Stream> streams;
  for (const c10::Device& device : devices) {
    if (device.is_cpu()) continue;
    const c10::Stream stream = current_stream(device);
    if (std::find(streams.begin(), streams.end(), stream) == streams.end())
      streams.push_back(stream);
  }
  return streams;
}

void continue_after(const std::vector<c10::Stream>& streams) {
  for (const c10::Stream& stream : streams) {
    const c10::Stream own = current_stream(stream.device());
    if (own == stream) continue;
    c10::Event done(stream.device_type());
    done.record(stream);
    done.block(own);
  }
}

}  // namespace convoy::detail
