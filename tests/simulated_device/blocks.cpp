// SPDX-License-Identifier: Apache-2.0
#include "simulated_device/blocks.h"

#include <c10/util/StringUtil.h>

#include <algorithm>

namespace convoy::simulated {
namespace {

// If a list is longer, accesses that can no longer conflict are removed from it.
constexpr size_t kLongList = 64;

bool overlap(const Use& a, const Use& b) { return a.begin < b.end && b.begin < a.end; }

bool within(const Use& inner, const Use& outer) {
  return inner.begin >= outer.begin && inner.end <= outer.end;
}

bool collide(const Access& before, const Access& next, const Streams& streams) {
  return (before.use.writes || next.use.writes) && overlap(before.use, next.use) &&
         !streams.is_before(before.moment, next.moment.stream);
}

// Whether every access that is ordered after `next` is also ordered after `before`.
bool replaces(const Access& next, const Access& before) {
  return within(before.use, next.use) &&
         (next.use.writes || (!before.use.writes && before.moment.stream == next.moment.stream));
}

std::string stream_name(size_t number, const Streams& streams) {
  const c10::Stream stream = streams.stream(number);
  return c10::str("stream ", stream.id(), " of ", stream.device());
}

}  // namespace

Block& Blocks::add(Block block) {
  const char* address = block.address;
  return blocks_.insert_or_assign(address, std::move(block)).first->second;
}

Block* Blocks::find(const void* address) {
  const auto* byte = static_cast<const char*>(address);
  auto after = blocks_.upper_bound(byte);
  if (after == blocks_.begin()) return nullptr;
  Block& block = std::prev(after)->second;
  return byte < block.address + block.bytes ? &block : nullptr;
}

std::string Blocks::enter(const Access& access, const Streams& streams) {
  Block* block = find(access.use.begin);
  if (block == nullptr) return "";
  std::vector<Access>& list = block->accesses;
  for (const Access& before : list)
    if (collide(before, access, streams))
      return c10::str(access.op.text(), " on ", stream_name(access.moment.stream, streams),
                      access.use.writes ? " writes" : " reads", " what ", before.op.text(), " on ",
                      stream_name(before.moment.stream, streams),
                      before.use.writes ? " writes" : " reads",
                      ", and no event or wait orders the two: ", describe(*block, streams));
  std::erase_if(list, [&](const Access& before) { return replaces(access, before); });
  if (list.size() > kLongList)
    std::erase_if(list,
                  [&](const Access& before) { return streams.is_known_to_all(before.moment); });
  list.push_back(access);
  return "";
}

std::string Blocks::unfinished_use(const Block& block, const Streams& streams) const {
  for (const Access& access : block.accesses) {
    const auto& recorded = block.recorded_streams;
    const bool is_safe =
        streams.is_before(access.moment, block.stream) || streams.host_knows(access.moment) ||
        std::find(recorded.begin(), recorded.end(), access.moment.stream) != recorded.end();
    if (!is_safe)
      return c10::str(access.op.text(), " on ", stream_name(access.moment.stream, streams),
                      " may still use ", describe(block, streams),
                      ", which was freed without record_stream or a wait, so that the next "
                      "allocation may get it");
  }
  return "";
}

std::string describe(const Block& block, const Streams& streams) {
  if (block.device.is_cpu())
    return c10::str("a pinned block of ", block.bytes, " bytes, allocated by ",
                    block.allocated_by.text());
  return c10::str("a block of ", block.bytes, " bytes of ", block.device, ", allocated by ",
                  block.allocated_by.text(), " on ", stream_name(block.stream, streams));
}

}  // namespace convoy::simulated
