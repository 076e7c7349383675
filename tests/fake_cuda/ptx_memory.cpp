// SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/ptx_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace convoy::testing {
namespace {

constexpr uint64_t kWordBytes = 4;

}  // namespace

PtxMemory::PtxMemory(const PtxAllocations& allocations, size_t places, uint64_t shared_bytes)
    : allocations_(allocations),
      ranges_(places),
      shared_(shared_bytes),
      words_((shared_bytes + kWordBytes - 1) / kWordBytes) {}

void PtxMemory::find(uint32_t place, uint64_t address, uint64_t bytes) {
  const auto after = allocations_.upper_bound(address);
  if (after != allocations_.begin()) {
    const auto& [begin, size] = *std::prev(after);
    if (address + bytes <= begin + size && address % bytes == 0) {
      ranges_[place] = {begin, begin + size};
      return;
    }
  }
  throw PtxError(
      fmt::format("{} bytes at {:#x} are not of any allocation, or not aligned", bytes, address));
}

uint8_t* PtxMemory::shared(uint64_t address, uint64_t bytes, bool writes) {
  const uint64_t begin = address - kSharedBegin;
  if (address < kSharedBegin || begin + bytes > shared_.size() || begin % bytes != 0)
    throw PtxError(
        fmt::format("{} bytes at {:#x} are not of shared memory, or not aligned", bytes, address));
  for (uint64_t word = begin / kWordBytes; word * kWordBytes < begin + bytes; ++word) {
    if (!writes && words_[word].written < 0)
      throw PtxError(fmt::format("shared memory at {:#x} is read before it is written", address));
    writes ? write(words_[word], address) : read(words_[word], address);
  }
  return shared_.data() + begin;
}

void PtxMemory::start_copy(uint32_t place, uint64_t to, uint64_t from, uint64_t bytes) {
  count(from, bytes, false);
  global(place, from, bytes);
  shared(to, bytes, true);
  const uint64_t begin = (to - kSharedBegin) / kWordBytes;
  for (uint64_t word = begin; word < begin + bytes / kWordBytes; ++word) words_[word].written = -1;
  copies().back().push_back({place, to, from, bytes});
}

void PtxMemory::wait_for_copies(uint64_t groups) {
  for (Copies& own = copies(); own.size() > groups + 1; own.pop_front())
    for (const Copy& copy : own.front())
      std::memcpy(shared(copy.to, copy.bytes, true), global(copy.place, copy.from, copy.bytes),
                  copy.bytes);
}

void PtxMemory::begin_block() {
  copies_.clear();
  std::fill(words_.begin(), words_.end(), Word());
  global_words_.clear();
  epoch_ = 0;
}

void PtxMemory::read(Word& word, uint64_t address) const {
  if (word.written == epoch_ && word.writer != thread_)
    throw PtxError(
        fmt::format("thread {} reads memory at {:#x} that thread {} wrote, with "
                    "no barrier between them",
                    thread_, address, word.writer));
  word.many_readers = word.read == epoch_ && (word.many_readers || word.reader != thread_);
  word.read = epoch_;
  word.reader = thread_;
}

void PtxMemory::write(Word& word, uint64_t address) const {
  const bool after_reader = word.read == epoch_ && (word.many_readers || word.reader != thread_);
  if (after_reader || (word.written == epoch_ && word.writer != thread_))
    throw PtxError(
        fmt::format("thread {} writes memory at {:#x} that thread {} uses, with "
                    "no barrier between them",
                    thread_, address, after_reader ? word.reader : word.writer));
  word.written = epoch_;
  word.writer = thread_;
}

}  // namespace convoy::testing
