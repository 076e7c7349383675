// SPDX-License-Identifier: Apache-2.0
//
// A block of threads picks the next token of one row, without a sort. Where the order of ids
// counts, each thread takes a segment of neighbours, so that sums by id are scans over threads. A
// cut (top-k, top-p) is a search for the lowest kept logit among ordered bit patterns: a pass over
// the row tries kProbes patterns, and does next to nothing for the logits below all of them. The
// search for top-p begins at a logit below which all ids together have less weight than top-p
// leaves out. Equal logits are kept by rising id. The row stays in cache after the first pass.
// Weights are 2^(scale * (logit - largest)). Weights and the sums of one thread are fp32; sums over
// threads are fp64. Reference: sampler_aten.cpp.
#include "convoy/model/kernels/cuda/elements.cuh"
#include "convoy/model/kernels/cuda/functions.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"
#include "convoy/model/kernels/sampler/sampler_launch.h"

namespace convoy::kernels::gpu {
namespace {

constexpr int kProbes = 7;  // a pass leaves an eighth of the patterns

// Bits whose order is the order of the numbers. Both zeros have the same bits.
CONVOY_DEVICE uint32_t pattern_of(float value) {
  const uint32_t bits = as_bits(value + 0.0f);
  return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

struct Top {
  float value;
  uint32_t id;
  float poison;  // NaN where a number is NaN, else 0

  CONVOY_DEVICE void join(const Top& other) {
    const bool takes = other.value > value || (other.value == value && other.id < id);
    value = takes ? other.value : value;
    id = takes ? other.id : id;
    poison += other.poison;
  }
  CONVOY_DEVICE Top across(int distance) const {
    return {from_lane_across(value, distance),
            static_cast<uint32_t>(from_lane_across(static_cast<int>(id), distance)),
            from_lane_across(poison, distance)};
  }
};

struct Highest {
  uint32_t value;

  CONVOY_DEVICE void join(const Highest& other) {
    value = other.value > value ? other.value : value;
  }
  CONVOY_DEVICE Highest across(int distance) const {
    return {static_cast<uint32_t>(from_lane_across(static_cast<int>(value), distance))};
  }
};

struct Masses {
  uint32_t counts[kProbes];
  float weights[kProbes];

  CONVOY_DEVICE void join(const Masses& other) {
#pragma unroll
    for (int probe = 0; probe < kProbes; ++probe) {
      counts[probe] += other.counts[probe];
      weights[probe] += other.weights[probe];
    }
  }
  CONVOY_DEVICE Masses across(int distance) const {
    Masses far;
#pragma unroll
    for (int probe = 0; probe < kProbes; ++probe) {
      far.counts[probe] =
          static_cast<uint32_t>(from_lane_across(static_cast<int>(counts[probe]), distance));
      far.weights[probe] = from_lane_across(weights[probe], distance);
    }
    return far;
  }
};

// A prefix of a row's ids by falling likelihood.
struct Cut {
  uint32_t pattern = 0;            // bits of the last kept logit; 0: all are kept
  uint32_t last_id = 0xffffffffu;  // last kept id among equal logits

  CONVOY_DEVICE bool keeps(uint32_t of, uint32_t id) const {
    return of > pattern || (of == pattern && id <= last_id);
  }
};

// The sum of the threads before this one, the sum with this one, and the sum of all threads. `end`
// of a thread equals `before` of the next one to the bit, so a number below the total lies between
// `before` and `end` of one thread.
struct Scan {
  double before, end, total;
};

// Called by all threads of a block. Threads come in the order of ids: within a warp, then warps.
CONVOY_DEVICE Scan scan_block(double own) {
  CONVOY_SHARED double of_threads[kBlockThreads];
  CONVOY_SHARED double of_warps[kBlockWarps];
  const uint32_t thread = thread_of_block(), warp = thread / kWarpThreads;
  const uint32_t lane = thread % kWarpThreads;
  wait_for_block();
  of_threads[thread] = own;
  wait_for_block();
  double before_in_warp = 0;
  for (uint32_t from = 0; from < lane; ++from)
    before_in_warp += of_threads[warp * kWarpThreads + from];
  const double end_in_warp = before_in_warp + own;
  if (lane == kWarpThreads - 1) of_warps[warp] = end_in_warp;
  wait_for_block();
  double before_warp = 0;
  Scan scan{0, 0, 0};
  for (uint32_t from = 0; from < kBlockWarps; ++from) {
    if (from == warp) before_warp = scan.total;
    scan.total += of_warps[from];
  }
  scan.before = before_warp + before_in_warp;
  scan.end = before_warp + end_in_warp;
  return scan;
}

// The logits of one row. Threads read kCount neighbours at once.
template <class Element, int kCount>
struct RowOfLogits {
  const Element* logits;
  uint32_t ids;

  // Calls body(id, logit) for the ids of this thread, neighbouring threads side by side.
  template <class Body>
  CONVOY_DEVICE void for_some(Body body) const {
    const uint32_t vectors = ids / kCount;
    for (uint32_t vector = thread_of_block(); vector < vectors; vector += kBlockThreads)
      visit<kCount>(vector * kCount, body);
    for (uint32_t id = vectors * kCount + thread_of_block(); id < ids; id += kBlockThreads)
      visit<1>(id, body);
  }
  // The same for one segment of ids, in their order. Segments come in the order of threads.
  template <class Body>
  CONVOY_DEVICE void for_segment(Body body) const {
    const uint32_t vectors = ids / kCount, thread = thread_of_block();
    const uint32_t together = (vectors + kBlockThreads - 1) / kBlockThreads;
    for (uint32_t vector = thread * together; vector < (thread + 1) * together; ++vector)
      if (vector < vectors) visit<kCount>(vector * kCount, body);
    if (thread + 1 < kBlockThreads) return;
    for (uint32_t id = vectors * kCount; id < ids; ++id) visit<1>(id, body);
  }

 private:
  template <int kTogether, class Body>
  CONVOY_DEVICE void visit(uint32_t first, Body& body) const {
    float values[kTogether];
    load(logits + first, values);
#pragma unroll
    for (int at = 0; at < kTogether; ++at) body(first + at, values[at]);
  }
};

template <class Element, int kCount>
class RowSampler {
 public:
  CONVOY_DEVICE RowSampler(const SampleLaunch& launch, uint32_t row)
      : raw_{static_cast<const Element*>(launch.logits) + row * launch.row_stride, launch.ids},
        all_{raw_.logits, launch.columns},
        used_{static_cast<const Element*>(launch.penalised) + row * launch.penalised_stride,
              launch.ids},
        rule_(launch.rules[row]),
        is_penalised_(launch.penalised != launch.logits) {}

  CONVOY_DEVICE void pick(SampledId* sampled, int64_t* next_id) {
    const Top raw = top(raw_), used = is_penalised_ ? top(used_) : raw;
    const float unusable = raw.poison + used.poison + (raw.value + used.value) * 0;
    if (unusable != unusable) {
      if (thread_of_block() != 0) return;
      *sampled = {-1, 0};
      *next_id = 0;
      return;
    }
    top_ = used.value;
    const uint32_t id = rule_.scale_for_base_2 == 0 ? used.id : draw();
    float largest = raw.value, sum = 1;
    if (rule_.wants_logprob != 0) {
      if (all_.ids != raw_.ids) largest = top(all_).value;
      sum = sum_of_all(largest);
    }
    if (thread_of_block() != 0) return;
    float logit[1];
    load(raw_.logits + id, logit);
    *sampled = {static_cast<int32_t>(id),
                rule_.wants_logprob != 0 ? logit[0] - largest - logarithm(sum) : 0};
    *next_id = id;
  }

 private:
  using Row = RowOfLogits<Element, kCount>;

  CONVOY_DEVICE float weight(float logit) const {
    return power_of_two((logit - top_) * rule_.scale_for_base_2);
  }

  CONVOY_DEVICE static Top top(const Row& row) {
    Top own{-__builtin_huge_valf(), 0xffffffffu, 0};
    row.for_some([&](uint32_t id, float value) {
      own.join({value, id, value != value ? value : 0});
    });
    return BlockTeam::joined(own);
  }

  // Sums over padded rows of the head too, which are never picked.
  CONVOY_DEVICE float sum_of_all(float largest) const {
    float sum = 0;
    all_.for_some([&](uint32_t, float value) { sum += exponential(value - largest); });
    return BlockTeam::joined(Sum{sum}).value;
  }

  // Counts and weights of the logits that `cut` keeps, from each of kProbes patterns on.
  CONVOY_DEVICE Masses masses(const Cut& cut, uint32_t first, uint32_t step) const {
    Masses own{};
    used_.for_some([&](uint32_t id, float value) {
      const uint32_t pattern = pattern_of(value);
      if (pattern < first || !cut.keeps(pattern, id)) return;
      const float of_id = weight(value);
#pragma unroll
      for (int probe = 0; probe < kProbes; ++probe) {
        const bool counts = pattern - first >= probe * step;
        own.counts[probe] += counts ? 1 : 0;
        own.weights[probe] += counts ? of_id : 0;
      }
    });
    return BlockTeam::joined(own);
  }

  // Weights of the logits that `cut` keeps: the sum of all, and the sum from a pattern on.
  struct Weights {
    float all, from;

    CONVOY_DEVICE void join(const Weights& other) {
      all += other.all;
      from += other.from;
    }
    CONVOY_DEVICE Weights across(int distance) const {
      return {from_lane_across(all, distance), from_lane_across(from, distance)};
    }
  };
  CONVOY_DEVICE Weights weights(const Cut& cut, uint32_t first) const {
    Weights own{};
    used_.for_some([&](uint32_t id, float value) {
      const uint32_t pattern = pattern_of(value);
      if (!cut.keeps(pattern, id)) return;
      const float of_id = weight(value);
      own.all += of_id;
      own.from += pattern >= first ? of_id : 0;
    });
    return BlockTeam::joined(own);
  }

  // The highest pattern from which on the kept logits satisfy enough(count, weight), and the count
  // and weight of the kept logits above it. Pattern 0 where no pattern does.
  struct Lowest {
    uint32_t pattern = 0, count_above = 0;
    float weight_above = 0;
  };
  // `least`: a pattern from which on there is enough; 0: none is known.
  template <class Enough>
  CONVOY_DEVICE Lowest search(const Cut& cut, uint32_t least, Enough enough) const {
    Lowest found;
    // Invariant: from found.pattern on there is enough, from found.pattern + 8 * step on there is
    // not. The lower half of a pattern in bf16 says nothing that its sign does not say.
    constexpr int kLastShift = sizeof(Element) == 2 ? 15 : 0;
    int shift = 30;
    least = least >> kLastShift << kLastShift;
    const uint32_t range = pattern_of(top_) - least;
    while (shift > kLastShift && range >> shift == 0) shift -= 3;
    // A search that starts at shift 30 begins at pattern 0 and has three probes in its first pass.
    // Other searches do not wrap: a row whose largest logit is near the end of fp32 has no token.
    if (shift < 30) found.pattern = least;
    for (; shift >= kLastShift; shift -= 3) {
      const uint32_t step = 1u << shift;
      const uint32_t first = found.pattern + step;
      // The first pass has four patterns only: beyond them the number would wrap.
      const Masses all = masses(cut, first, step);
      uint32_t chosen = 0;
#pragma unroll
      for (int probe = 0; probe < kProbes; ++probe) {
        const bool exists = shift < 30 || probe < 3;
        if (exists && enough(all.counts[probe], all.weights[probe])) chosen = probe + 1;
      }
#pragma unroll
      for (int probe = 0; probe < kProbes; ++probe) {
        if (static_cast<uint32_t>(probe) != chosen || (shift == 30 && probe >= 3)) continue;
        found.count_above = all.counts[probe];
        found.weight_above = all.weights[probe];
      }
      found.pattern += chosen * step;
    }
    if (kLastShift > 0 && found.pattern >> 31 == 0 && found.pattern != 0)
      found.pattern |= (1u << kLastShift) - 1;
    return found;
  }

  // The id of the `wanted`-th logit of this pattern that `cut` keeps; the last of all where there
  // are fewer.
  CONVOY_DEVICE uint32_t tie(const Cut& cut, uint32_t pattern, double wanted) {
    uint32_t own = 0;
    const auto for_ties = [&](auto body) {
      used_.for_segment([&](uint32_t id, float value) {
        if (pattern_of(value) == pattern && cut.keeps(pattern, id)) body(id);
      });
    };
    for_ties([&](uint32_t) { ++own; });
    const Scan scan = scan_block(own);
    if (wanted > scan.total) return pattern == cut.pattern ? cut.last_id : 0xffffffffu;
    double left = wanted - scan.before;
    const bool has = left > 0 && left <= own;
    uint32_t found = 0;
    if (has)
      for_ties([&](uint32_t id) {
        found = left > 0 ? id : found;
        left -= 1;
      });
    return shared_id(has, found);
  }

  // Returns `id` of the one thread for which `has` is true.
  CONVOY_DEVICE static uint32_t shared_id(bool has, uint32_t id) {
    return BlockTeam::joined(Highest{has ? id : 0}).value;
  }

  CONVOY_DEVICE Cut likeliest(uint32_t count) {
    const Lowest lowest = search(Cut(), 0, [&](uint32_t found, float) { return found >= count; });
    return {lowest.pattern, tie(Cut(), lowest.pattern, count - lowest.count_above)};
  }

  CONVOY_DEVICE Cut nucleus(const Cut& cut) {
    const uint32_t pattern = pattern_of(top_ + rule_.least_log2_weight / rule_.scale_for_base_2);
    const Weights of = weights(cut, pattern);
    const double enough = rule_.top_p * static_cast<double>(of.all);
    const Lowest lowest =
        search(cut, of.from >= enough ? pattern : 0,
               [&](uint32_t count, float weight) { return count > 0 && weight >= enough; });
    if (lowest.pattern == 0) return cut;
    const double each = weight(number_of(lowest.pattern));
    const double wanted = (enough - static_cast<double>(lowest.weight_above)) / each;
    const double whole = __builtin_ceil(wanted);
    return {lowest.pattern, tie(cut, lowest.pattern, whole < 1 ? 1 : whole)};
  }

  CONVOY_DEVICE static float number_of(uint32_t pattern) {
    return as_float(pattern >> 31 != 0 ? pattern & 0x7fffffffu : ~pattern);
  }

  // The id at the share rule_.uniform of the weights of the kept ids.
  CONVOY_DEVICE uint32_t draw() {
    Cut cut;
    if (rule_.top_k > 0 && rule_.top_k < used_.ids) cut = likeliest(rule_.top_k);
    if (rule_.top_p < 1) cut = nucleus(cut);
    const auto kept_weight = [&](uint32_t id, float value) {
      if (!cut.keeps(pattern_of(value), id)) return 0.0f;
      const float of_id = weight(value);
      return of_id >= rule_.min_p ? of_id : 0;
    };
    float own = 0;
    used_.for_segment([&](uint32_t id, float value) { own += kept_weight(id, value); });
    const Scan scan = scan_block(own);
    const double wanted = rule_.uniform * scan.total;
    // Rounding may carry the place to the end of all: then the last id with a weight has it.
    const bool has =
        own > 0 && wanted >= scan.before && (wanted < scan.end || scan.end >= scan.total);
    uint32_t found = 0;
    float sum = 0;
    bool is_found = false;
    if (has)
      used_.for_segment([&](uint32_t id, float value) {
        const float of_id = kept_weight(id, value);
        sum += of_id;
        found = !is_found && of_id > 0 ? id : found;
        is_found = is_found || scan.before + static_cast<double>(sum) > wanted;
      });
    return shared_id(has, found);
  }

  Row raw_, all_, used_;
  SampleRule rule_;
  bool is_penalised_;
  float top_ = 0;
};

template <class Element>
CONVOY_DEVICE void sample_rows(const SampleLaunch& launch) {
  for (uint64_t row = nvidia::block_number(); row < launch.rows; row += nvidia::num_blocks()) {
    const auto number = static_cast<uint32_t>(row);
    SampledId* const sampled = launch.sampled + row;
    int64_t* const next_id = launch.next_ids + row;
    if (launch.vectors != 0)
      RowSampler<Element, kPerLoad<Element>>(launch, number).pick(sampled, next_id);
    else
      RowSampler<Element, 1>(launch, number).pick(sampled, next_id);
  }
}

}  // namespace

CONVOY_KERNEL void sample_fp32(const SampleLaunch launch) { sample_rows<float>(launch); }
CONVOY_KERNEL void sample_bf16(const SampleLaunch launch) { sample_rows<Bf16>(launch); }

}  // namespace convoy::kernels::gpu
