// SPDX-License-Identifier: Apache-2.0
//
// The shared pages between a rank and its launcher, as both programs map them. Any change here
// requires a new kVersion.
//
// A slot holds the record `number` with number % kNumSlots == its index. Its version is 2 * number
// + 1 while it is written and 2 * number + 2 afterwards. Every word is stored with release and
// loaded with acquire order: a reader that has seen any word of a later record then sees a later
// version too.
#pragma once

#include <atomic>
#include <cstdint>

namespace convoy::telemetry::flight_layout {

using Word = std::atomic<uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

constexpr uint64_t kMagic = 0x3144524C46594F43;  // "COYFLRD1" in memory
constexpr uint64_t kVersion = 1;
constexpr uint64_t kNumSlots = 1024;

struct Slot {
  Word version;
  Word sequence;
  Word entered_ns;  // CLOCK_MONOTONIC, as for all times here
  Word waited_ns;   // 0 = not yet
  Word left;        // 2 * nanoseconds + (1 = failed); 0 = not yet
  Word num_elements;
  Word bytes;
  Word shape[3];
  Word operation[2];  // text, zero-padded
  Word group[2];
  Word dtype;
  Word sizes;  // num_dims in the low 32 bits, group_size in the high ones
};
static_assert(sizeof(Slot) == 128);

enum class Life : uint64_t { None, Attached, Ended };

struct Head {
  Word magic;
  Word version;
  Word total_bytes;
  Word num_slots;
  Word rank;
  Word pid;
  Word life;
  Word num_beats;
  Word beat_ns;
  Word step;              // completed steps + 1; 0 = unknown
  Word checkpoint_step;   // step + 1; 0 = none
  Word phase;             // text
  Word next_number;       // number of the next collective
  Word waiting_since_ns;  // when the rank began to block in a collective; 0 = it does not block
};

struct Pages {
  alignas(4096) Head head;
  alignas(4096) Slot slots[kNumSlots];
};
static_assert(sizeof(Pages) == 4096 + 128 * kNumSlots);

}  // namespace convoy::telemetry::flight_layout
