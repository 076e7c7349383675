// SPDX-License-Identifier: Apache-2.0
//
// Few queries against many keys, read where they lie: the products of 16 keys are summed side by
// side and their lanes added together at the end, so that no key costs a horizontal sum of its own.
// See vector16.inl.

// Multiplies and adds kDotStep features.
#if CONVOY_SIMD_LEVEL >= 3
template <class Element>
constexpr int64_t kDotStep = kLanes* kPair<Element>;

CONVOY_INLINE Floats dot_step(Floats sums, const c10::BFloat16* a, const c10::BFloat16* b) {
  return reinterpret_cast<Floats>(_mm512_dpbf16_ps(
      reinterpret_cast<__m512>(sums), reinterpret_cast<__m512bh>(_mm512_loadu_si512(a)),
      reinterpret_cast<__m512bh>(_mm512_loadu_si512(b))));
}
CONVOY_INLINE Floats dot_step(Floats sums, const float* a, const float* b) {
  return sums + load(a) * load(b);
}
#else
template <class Element>
constexpr int64_t kDotStep = kLanes;

template <class Element>
CONVOY_INLINE Floats dot_step(Floats sums, const Element* a, const Element* b) {
  return sums + load(a) * load(b);
}
#endif

// Lane `i` of the result is the sum of the lanes of vectors[i]: each step adds halves of two
// vectors into one.
#if CONVOY_SIMD_LEVEL >= 2
template <int32_t half, int32_t... lanes>
CONVOY_INLINE Floats fold_pair(Floats first, Floats second,
                               std::integer_sequence<int32_t, lanes...>) {
  constexpr auto source = [](int32_t lane) {
    const int32_t place = lane / (2 * half) * (2 * half) + lane % half;
    return lane % (2 * half) < half ? place : place + static_cast<int32_t>(kLanes);
  };
  return __builtin_shuffle(first, second, Ints{source(lanes)...}) +
         __builtin_shuffle(first, second, Ints{source(lanes) + half...});
}
template <int32_t half>
CONVOY_INLINE void fold_lanes(Floats* vectors) {
#pragma GCC unroll 8
  for (int32_t at = 0; at < half; ++at)
    vectors[at] = fold_pair<half>(vectors[at], vectors[at + half],
                                  std::make_integer_sequence<int32_t, kLanes>());
}
CONVOY_INLINE Floats sums_of_lanes(Floats* vectors) {
  fold_lanes<8>(vectors);
  fold_lanes<4>(vectors);
  fold_lanes<2>(vectors);
  fold_lanes<1>(vectors);
  return vectors[0];
}
#else
// In the same order: the halves of a vector are added, then the halves of the sum, down to four
// lanes. The sums of four lanes stand side by side.
using Quarter = float __attribute__((vector_size(16)));
CONVOY_INLINE Quarter four_sums(const Floats& value) {
#if CONVOY_SIMD_LEVEL == 1
  const auto eight = reinterpret_cast<__m256>(value.low + value.high);
  return reinterpret_cast<Quarter>(
      _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1)));
#else
  const auto eight = value.low + value.high;
  return eight.low + eight.high;
#endif
}
CONVOY_INLINE Floats sums_of_lanes(const Floats* vectors) {
  using Places = int32_t __attribute__((vector_size(16)));
  float sums[kLanes];
#pragma GCC unroll 4
  for (int64_t at = 0; at < kLanes; at += 4) {
    const auto two_sums = [&](int64_t first) {
      const Quarter a = four_sums(vectors[first]);
      const Quarter b = four_sums(vectors[first + 1]);
      return __builtin_shuffle(a, b, Places{0, 1, 4, 5}) + __builtin_shuffle(a, b, Places{2, 3, 6, 7});
    };
    const Quarter a = two_sums(at);
    const Quarter b = two_sums(at + 2);
    const Quarter four =
        __builtin_shuffle(a, b, Places{0, 2, 4, 6}) + __builtin_shuffle(a, b, Places{1, 3, 5, 7});
    __builtin_memcpy(sums + at, &four, sizeof four);
  }
  return load(sums);
}
#endif

// One query and up to kLanes keys; those from `present` on repeat the last.
template <class Element>
CONVOY_INLINE Floats sixteen_scores(const Element* query, const Element* keys, int64_t key_stride,
                                    int64_t present, int64_t features) {
  constexpr int64_t step = kDotStep<Element>;
  Floats sums[kLanes]{};
  int64_t at = 0;
  for (; at + step <= features; at += step) {
#pragma GCC unroll 16
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const int64_t key = lane < present ? lane : present - 1;
      sums[lane] = dot_step(sums[lane], query + at, keys + key * key_stride + at);
    }
  }
  for (; at < features; at += kLanes) {
    const int64_t count = std::min(kLanes, features - at);
    const Floats part = load_part(query + at, count);
    for (int64_t lane = 0; lane < present; ++lane)
      sums[lane] += part * load_part(keys + lane * key_stride + at, count);
  }
  return sums_of_lanes(sums);
}

template <class Element>
void query_scores(const Element* queries, const Element* keys, float* scores,
                  const QueryShape& shape) {
  int64_t key = 0;
  for (; key + kLanes <= shape.keys; key += kLanes) {
    for (int64_t query = 0; query < shape.queries; ++query)
      store(scores + query * shape.score_stride + key,
            sixteen_scores(queries + query * shape.query_stride, keys + key * shape.key_stride,
                           shape.key_stride, kLanes, shape.features));
  }
  if (key == shape.keys) return;
  for (int64_t query = 0; query < shape.queries; ++query)
    store_part(scores + query * shape.score_stride + key,
               sixteen_scores(queries + query * shape.query_stride, keys + key * shape.key_stride,
                              shape.key_stride, shape.keys - key, shape.features),
               shape.keys - key);
}

// `queries` rows of the sums over `vectors` vectors of features, in registers.
template <class Element, int64_t queries, int64_t vectors>
inline void sum_block(const float* weights, const Element* values, float* out,
                      const QueryShape& shape) {
  Floats sums[queries][vectors]{};
  for (int64_t key = 0; key < shape.keys; ++key) {
    const Element* value = values + key * shape.key_stride;
#pragma GCC unroll 4
    for (int64_t vector = 0; vector < vectors; ++vector) {
      const Floats loaded = load(value + vector * kLanes);
#pragma GCC unroll 4
      for (int64_t query = 0; query < queries; ++query)
        sums[query][vector] += weights[query * shape.score_stride + key] * loaded;
    }
  }
  for (int64_t query = 0; query < queries; ++query) {
    for (int64_t vector = 0; vector < vectors; ++vector)
      store(out + query * shape.query_stride + vector * kLanes, sums[query][vector]);
  }
}

template <class Element, int64_t queries>
inline void sum_features(const float* weights, const Element* values, float* out,
                         const QueryShape& shape) {
  int64_t at = 0;
  for (; at + 4 * kLanes <= shape.features; at += 4 * kLanes)
    sum_block<Element, queries, 4>(weights, values + at, out + at, shape);
  for (; at + kLanes <= shape.features; at += kLanes)
    sum_block<Element, queries, 1>(weights, values + at, out + at, shape);
  if (at == shape.features) return;
  const int64_t count = shape.features - at;
  for (int64_t query = 0; query < queries; ++query) {
    Floats sums{};
    for (int64_t key = 0; key < shape.keys; ++key)
      sums += weights[query * shape.score_stride + key] *
              load_part(values + key * shape.key_stride + at, count);
    store_part(out + query * shape.query_stride + at, sums, count);
  }
}

template <class Element>
void query_sums(const float* weights, const Element* values, float* out, const QueryShape& shape) {
  int64_t query = 0;
  for (; query + 4 <= shape.queries; query += 4)
    sum_features<Element, 4>(weights + query * shape.score_stride, values,
                             out + query * shape.query_stride, shape);
  for (; query < shape.queries; ++query)
    sum_features<Element, 1>(weights + query * shape.score_stride, values,
                             out + query * shape.query_stride, shape);
}
