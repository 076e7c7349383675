// SPDX-License-Identifier: Apache-2.0
//
// Loops over the logits of one row, for the sampler. See vector16.inl.

template <class Element>
LogitRange logit_range(const Element* logits, int64_t total) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Floats highest = all(-kInfinity);
  Floats lowest = all(kInfinity);
  Ints ordered = ~Ints{};
  for_lanes(total, [&](int64_t at, auto count) {
    const Floats value = load_lanes(logits + at, count, static_cast<float>(logits[0]));
    highest = larger(value, highest);
    lowest = smaller(value, lowest);
    ordered &= is_number(value);
  });
  LogitRange range{.lowest = -largest(-lowest), .highest = largest(highest), .all_numbers = true};
  for (int64_t lane = 0; lane < kLanes; ++lane) range.all_numbers &= ordered[lane] != 0;
  return range;
}

template <class Element>
LargestLogit largest_logit(const Element* logits, int64_t total) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  Floats best = all(kNone);
  Ints places{};
  Ints ordered = ~Ints{};
  constexpr int32_t kPlaces[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Ints place = load(kPlaces);
  for_lanes(total, [&](int64_t at, auto count) {
    const Floats value = load_lanes(logits + at, count, kNone);
    const Ints better = above(value, best);
    best = chosen(better, value, best);
    places = chosen(better, place, places);
    ordered &= is_number(value);
    place += static_cast<int32_t>(kLanes);
  });
  LargestLogit found{.value = kNone, .index = 0, .all_numbers = true};
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    found.all_numbers &= ordered[lane] != 0;
    if (best[lane] > found.value || (best[lane] == found.value && places[lane] < found.index))
      found = {best[lane], places[lane], found.all_numbers};
  }
  return found;
}

inline void weigh_logits(const float* logits, int64_t total, float highest,
                         float inverse_temperature, float* weights) {
  for_lanes(total, [&](int64_t at, auto count) {
    const Floats distance = highest - load_lanes(logits + at, count);
    store_lanes(weights + at, exponential(-distance * inverse_temperature), count);
  });
}

inline void logit_mass(const float* logits, const float* weights, int64_t total,
                       const float* thresholds, LogitMass* masses) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  Doubles sums[kLogitThresholds]{};
  Ints counts[kLogitThresholds]{};
  for (int64_t begin = 0; begin < total; begin += kVectorsPerSum * kLanes) {
    Floats parts[kLogitThresholds]{};
    for_lanes(std::min(kVectorsPerSum * kLanes, total - begin), [&](int64_t at, auto count) {
      const Floats value = load_lanes(logits + begin + at, count, kNone);
      const Floats weight = load_lanes(weights + begin + at, count);
#pragma GCC unroll 4
      for (int64_t index = 0; index < kLogitThresholds; ++index) {
        const Ints reaches = at_least(value, all(thresholds[index]));
        parts[index] += chosen(reaches, weight, all(0.0f));
        counts[index] -= reaches;
      }
    });
#pragma GCC unroll 4
    for (int64_t index = 0; index < kLogitThresholds; ++index)
      sums[index] += widened(parts[index]);
  }
  for (int64_t index = 0; index < kLogitThresholds; ++index) {
    masses[index] = {.count = 0, .weight = sum(sums[index])};
    for (int64_t lane = 0; lane < kLanes; ++lane) masses[index].count += counts[index][lane];
  }
}

inline void keep_weights(const float* logits, int64_t total, float lowest_logit,
                         float lowest_weight, float* weights) {
  for_lanes(total, [&](int64_t at, auto count) {
    const Floats weight = load_lanes(weights + at, count);
    const Ints kept = at_least(load_lanes(logits + at, count), all(lowest_logit)) &
                      at_least(weight, all(lowest_weight));
    store_lanes(weights + at, chosen(kept, weight, all(0.0f)), count);
  });
}

inline double sum_row(const float* values, int64_t total) {
  return long_sum(total, [&](int64_t at, auto count) { return load_lanes(values + at, count); });
}

#if CONVOY_SIMD_LEVEL >= 2
CONVOY_INLINE __mmask16 lanes_between(__m512 value, float from, float below) {
  return _mm512_cmp_ps_mask(value, _mm512_set1_ps(from), _CMP_GE_OQ) &
         _mm512_cmp_ps_mask(value, _mm512_set1_ps(below), _CMP_LT_OQ);
}
#endif

// Results are compressed in a register, which is stored whole: the instruction that compresses
// while it stores is several times slower on Zen 4.
inline int64_t find_logits(const float* logits, int64_t total, float from, float below,
                           int32_t* ids) {
  int64_t found = 0;
  int64_t at = 0;
#if CONVOY_SIMD_LEVEL >= 2
  for (; at + kLanes <= total; at += kLanes) {
    const __mmask16 wanted = lanes_between(_mm512_loadu_ps(logits + at), from, below);
    if (wanted == 0) continue;
    const Ints lanes = Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} +
                       static_cast<int32_t>(at);
    _mm512_storeu_si512(ids + found,
                        _mm512_maskz_compress_epi32(wanted, reinterpret_cast<__m512i>(lanes)));
    found += __builtin_popcount(wanted);
  }
#endif
  for (; at < total; ++at) {
    ids[found] = static_cast<int32_t>(at);
    found += logits[at] >= from && logits[at] < below ? 1 : 0;
  }
  return found;
}

inline int64_t compact_logits(const float* logits, const float* weights, int64_t total, float from,
                              float below, float* kept_logits, float* kept_weights) {
  int64_t found = 0;
  int64_t at = 0;
#if CONVOY_SIMD_LEVEL >= 2
  for (; at + kLanes <= total; at += kLanes) {
    const __m512 value = _mm512_loadu_ps(logits + at);
    const __m512 weight = _mm512_loadu_ps(weights + at);
    const __mmask16 wanted = lanes_between(value, from, below);
    _mm512_storeu_ps(kept_logits + found, _mm512_maskz_compress_ps(wanted, value));
    _mm512_storeu_ps(kept_weights + found, _mm512_maskz_compress_ps(wanted, weight));
    found += __builtin_popcount(wanted);
  }
#endif
  for (; at < total; ++at) {
    const float logit = logits[at];
    const float weight = weights[at];
    kept_logits[found] = logit;
    kept_weights[found] = weight;
    found += logit >= from && logit < below ? 1 : 0;
  }
  return found;
}
