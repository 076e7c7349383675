// SPDX-License-Identifier: Apache-2.0
//
// The functions of libnccl.so.2 that Convoy calls, declared as in nccl.h.
#include "fake_nccl/fake_nccl.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "fake_nccl/communicator.h"
#include "fake_nccl/sums.h"

using fake_nccl::Communicator;
using fake_nccl::kSlotBytes;

namespace {

struct UniqueId {
  char bytes[128];
};

struct Config {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int blocking;
};

// The part of a buffer that fits into a slot: whole elements of `element_bytes`.
struct Chunk {
  size_t begin;  // offset in bytes
  size_t bytes;
};

template <class Body>
bool each_chunk(size_t count, size_t element_bytes, Body body) {
  const size_t all = count * element_bytes;
  for (size_t begin = 0; begin < all; begin += kSlotBytes)
    if (!body(Chunk{begin, std::min(kSlotBytes, all - begin)})) return false;
  return true;
}

const char* read_from(const void* address) {
  return static_cast<const char*>(fake_nccl::device.address(address));
}
char* write_to(void* address) { return static_cast<char*>(fake_nccl::device.address(address)); }

// Stores this rank's bytes, waits for all ranks, calls `take` to read theirs, and waits for all
// ranks again.
template <class Take>
bool exchange(const Communicator& communicator, const char* own, size_t bytes, Take take) {
  if (own != nullptr) std::memcpy(communicator.slots().own_slot(), own, bytes);
  if (!communicator.meet()) return false;
  take();
  return communicator.meet();
}

std::vector<const char*> all_slots(const Communicator& communicator) {
  std::vector<const char*> slots;
  for (int rank = 0; rank < communicator.size(); ++rank)
    slots.push_back(communicator.slots().slot(rank));
  return slots;
}

bool is_known(int operation) {
  return operation == fake_nccl::kSum || operation == fake_nccl::kMax ||
         operation == fake_nccl::kMin;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 22809;  // version 2.28.9
  return fake_nccl::kSuccess;
}

void fake_nccl_use_device(const FakeNcclDevice* device) { fake_nccl::device = *device; }

int ncclGetUniqueId(UniqueId* id) {
  const std::string name = fake_nccl::SharedSlots::create();
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id->bytes, name.data(), name.size());
  return fake_nccl::kSuccess;
}

int ncclCommInitRankConfig(Communicator** made, int size, UniqueId id, int rank,
                           const Config* config) {
  constexpr unsigned int kMagic = 0xcafebeef;
  constexpr unsigned int kFirstVersion = 21400;
  if (size > fake_nccl::kMaxRanks || rank < 0 || rank >= size || config->magic != kMagic ||
      config->version < kFirstVersion || config->blocking != 0)
    return fake_nccl::kInvalidArgument;
  try {
    *made = new Communicator(id.bytes, rank, size);
  } catch (const std::runtime_error&) {
    return fake_nccl::kSystemError;
  }
  return fake_nccl::kInProgress;
}

int ncclAllReduce(const void* from, void* to, size_t count, int type, int operation,
                  Communicator* communicator, void* stream) {
  const size_t element_bytes = fake_nccl::bytes_of_type(type);
  if (element_bytes == 0 || !is_known(operation)) return fake_nccl::kInvalidArgument;
  return communicator->put(
      stream, {{from, count * element_bytes, false}, {to, count * element_bytes, true}}, [=] {
        return each_chunk(count, element_bytes, [&](Chunk chunk) {
          return exchange(*communicator, read_from(from) + chunk.begin, chunk.bytes, [&] {
            fake_nccl::reduce(type, operation, all_slots(*communicator),
                              chunk.bytes / element_bytes, write_to(to) + chunk.begin);
          });
        });
      });
}

int ncclReduceScatter(const void* whole, void* own, size_t own_count, int type, int operation,
                      Communicator* communicator, void* stream) {
  const size_t element_bytes = fake_nccl::bytes_of_type(type);
  if (element_bytes == 0 || !is_known(operation)) return fake_nccl::kInvalidArgument;
  const size_t own_bytes = own_count * element_bytes;
  const auto size = static_cast<size_t>(communicator->size());
  return communicator->put(stream, {{whole, size * own_bytes, false}, {own, own_bytes, true}}, [=] {
    for (size_t owner = 0; owner < size; ++owner) {
      const char* const piece = read_from(whole) + owner * own_bytes;
      const bool is_own = owner == static_cast<size_t>(communicator->rank());
      if (!each_chunk(own_count, element_bytes, [&](Chunk chunk) {
            return exchange(*communicator, piece + chunk.begin, chunk.bytes, [&] {
              if (is_own)
                fake_nccl::reduce(type, operation, all_slots(*communicator),
                                  chunk.bytes / element_bytes, write_to(own) + chunk.begin);
            });
          }))
        return false;
    }
    return true;
  });
}

int ncclAllGather(const void* own, void* whole, size_t own_count, int type,
                  Communicator* communicator, void* stream) {
  const size_t element_bytes = fake_nccl::bytes_of_type(type);
  if (element_bytes == 0) return fake_nccl::kInvalidArgument;
  const size_t own_bytes = own_count * element_bytes;
  const auto size = static_cast<size_t>(communicator->size());
  return communicator->put(stream, {{own, own_bytes, false}, {whole, size * own_bytes, true}}, [=] {
    return each_chunk(own_count, element_bytes, [&](Chunk chunk) {
      return exchange(*communicator, read_from(own) + chunk.begin, chunk.bytes, [&] {
        for (size_t rank = 0; rank < size; ++rank)
          std::memcpy(write_to(whole) + rank * own_bytes + chunk.begin,
                      communicator->slots().slot(static_cast<int>(rank)), chunk.bytes);
      });
    });
  });
}

int ncclBroadcast(const void* from, void* to, size_t count, int type, int root,
                  Communicator* communicator, void* stream) {
  const size_t element_bytes = fake_nccl::bytes_of_type(type);
  if (element_bytes == 0 || root < 0 || root >= communicator->size())
    return fake_nccl::kInvalidArgument;
  const bool is_root = root == communicator->rank();
  std::vector<FakeNcclRange> ranges = {{to, count * element_bytes, true}};
  if (is_root) ranges.push_back({from, count * element_bytes, false});
  return communicator->put(stream, ranges, [=] {
    return each_chunk(count, element_bytes, [&](Chunk chunk) {
      return exchange(
          *communicator, is_root ? read_from(from) + chunk.begin : nullptr, chunk.bytes, [&] {
            std::memmove(write_to(to) + chunk.begin, communicator->slots().slot(root), chunk.bytes);
          });
    });
  });
}

int ncclCommGetAsyncError(Communicator* communicator, int* state) {
  if (communicator == nullptr) return fake_nccl::kInvalidArgument;
  *state = communicator->state();
  return fake_nccl::kSuccess;
}

int ncclCommAbort(Communicator* communicator) {
  communicator->abort();
  delete communicator;
  return fake_nccl::kSuccess;
}

int ncclCommDestroy(Communicator* communicator) {
  communicator->finish();
  delete communicator;
  return fake_nccl::kSuccess;
}

const char* ncclGetErrorString(int result) {
  switch (result) {
    case fake_nccl::kSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case fake_nccl::kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "invalid argument";
  }
}

const char* ncclGetLastError(Communicator*) { return "Last error:\nsocket 5 is closed\n"; }
}
