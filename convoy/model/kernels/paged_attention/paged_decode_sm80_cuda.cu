// SPDX-License-Identifier: Apache-2.0
//
// Attention of one new token per row over a paged cache, on the matrix units: a warp takes 16 keys
// for 8 query heads of one kv head, and a block of threads a share of all keys. Scores are keys
// times queries (16 keys x 8 heads), results are values times weights (features x 8 heads), so that
// few heads fill the units' short side and every key and value goes from memory to registers once,
// in pieces of 8 features. Softmax runs online in base 2; weights are rounded to bf16 as
// FlashAttention does. It computes heads of 64 and 128 features; paged_attention_cuda.cu computes
// other heads. Reference: paged_attention_aten.cpp.
#include "convoy/model/kernels/cuda/matrix_units.cuh"
#include "convoy/model/kernels/paged_attention/paged_shares.cuh"

namespace convoy::kernels::gpu {
namespace {

constexpr int kHeads = 8;
constexpr uint32_t kTileKeys = 16;
static_assert(kKeyStep == kBlockWarps * kTileKeys);

CONVOY_DEVICE uint32_t pair_of(const Piece<Bf16>& piece, int pair) { return piece.words[pair]; }
CONVOY_DEVICE uint32_t pair_of(const Piece<Int8>& piece, int pair) {
  return bf16_pair(piece.at(2 * pair), piece.at(2 * pair + 1));
}

// Features 2 * pair (`lower`) and 2 * pair + 1 (`upper`) of two tokens.
CONVOY_DEVICE void interleave(const Piece<Bf16>& first, const Piece<Bf16>& second, int pair,
                              uint32_t& lower, uint32_t& upper) {
  const uint32_t a = first.words[pair], b = second.words[pair];
  lower = (a & 0xffffu) | b << 16;
  upper = a >> 16 | (b & 0xffff0000u);
}
CONVOY_DEVICE void interleave(const Piece<Int8>& first, const Piece<Int8>& second, int pair,
                              uint32_t& lower, uint32_t& upper) {
  lower = bf16_pair(first.at(2 * pair), second.at(2 * pair));
  upper = bf16_pair(first.at(2 * pair + 1), second.at(2 * pair + 1));
}

// Sums of a warp over its keys. A lane has the heads `quarter` * 2 and `quarter` * 2 + 1. Its
// scores belong to the keys `group` and `group` + 8 of a tile. Its sums in the tile of the matrix
// units numbered 4 * piece + pair belong to the features 64 * piece + 8 * group + 2 * pair and the
// next.
template <class Stored, int kHeadDim>
struct WarpAttention {
  // Pieces of a key that a lane holds, 8 features each.
  static constexpr int kKeyPieces = kHeadDim / 32;
  static constexpr int kValuePieces = kHeadDim / 64;
  static constexpr int kFeatureTiles = kHeadDim / 16;

  const PagedDecodeLaunch& launch;
  const uint32_t lane = thread_of_block() % kWarpThreads;
  const uint32_t group = lane / 4, quarter = lane % 4;
  uint32_t q[kKeyPieces][4];
  float sums[kFeatureTiles][4] = {};
  float tops[2] = {kLowest, kLowest};
  float divisors[2] = {0, 0};  // over this lane's keys

  CONVOY_DEVICE WarpAttention(const PagedDecodeLaunch& of, const Part& part) : launch(of) {
    const bool has_head = group < part.num_heads;
    const Bf16* const from =
        static_cast<const Bf16*>(launch.q) + part.row.token * launch.q_token_stride +
        (part.first_head + (has_head ? group : 0)) * launch.q_head_stride + quarter * kElements;
#pragma unroll
    for (int piece = 0; piece < kKeyPieces; ++piece) {
      load_words<Words4>(from + piece * 32, q[piece]);
#pragma unroll
      for (uint32_t& word : q[piece]) word = has_head ? word : 0;
    }
  }

  // Takes the keys `first` to first + 15, as far as they are in [begin, end). All of them are in
  // one block of the cache.
  CONVOY_DEVICE void take(const int32_t* blocks, uint32_t kv_head, uint32_t first, uint32_t begin,
                          uint32_t end) {
    const PagedPool& pool = launch.pool;
    const auto block = static_cast<uint64_t>(blocks[first / pool.block_tokens]);
    const uint64_t slot = block * pool.block_tokens + first % pool.block_tokens;
    const auto is_seen = [&](uint32_t key) { return first + key >= begin && first + key < end; };
    const auto place = [&](uint32_t key) { return (slot + key) * pool.kv_heads + kv_head; };

    Piece<Stored> keys[2][kKeyPieces];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t key = half * 8 + group;
      const Stored* const from =
          static_cast<const Stored*>(pool.keys) + place(key) * kHeadDim + quarter * kElements;
#pragma unroll
      for (int piece = 0; piece < kKeyPieces; ++piece) {
        keys[half][piece].clear();
        if (is_seen(key)) keys[half][piece].read(from + piece * 32);
      }
    }
    Piece<Stored> values[4][kValuePieces];
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      const uint32_t key = at / 2 * 8 + quarter * 2 + at % 2;
      const Stored* const from =
          static_cast<const Stored*>(pool.values) + place(key) * kHeadDim + group * kElements;
#pragma unroll
      for (int piece = 0; piece < kValuePieces; ++piece) {
        values[at][piece].clear();
        if (is_seen(key)) values[at][piece].read(from + piece * 64);
      }
    }

    float scores[4] = {};
#pragma unroll
    for (int piece = 0; piece < kKeyPieces; ++piece) {
#pragma unroll
      for (int pair = 0; pair < 4; pair += 2) {
        const uint32_t tile[4] = {pair_of(keys[0][piece], pair), pair_of(keys[1][piece], pair),
                                  pair_of(keys[0][piece], pair + 1),
                                  pair_of(keys[1][piece], pair + 1)};
        multiply_add_tile(scores, tile, q[piece][pair], q[piece][pair + 1]);
      }
    }
    float value_scales[2] = {1, 1};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t key = half * 8 + group;
      float factor = launch.scale_for_base_2;
      if constexpr (std::is_same_v<Stored, Int8>) {
        if (is_seen(key)) {
          factor *= pool.key_scales[place(key)];
          value_scales[half] = pool.value_scales[place(key)];
        }
      }
#pragma unroll
      for (int head = 0; head < 2; ++head)
        scores[half * 2 + head] = is_seen(key) ? scores[half * 2 + head] * factor : -kInfinity;
    }
    weigh(scores, value_scales, values);
  }

  CONVOY_DEVICE void weigh(float (&scores)[4], const float (&value_scales)[2],
                           const Piece<Stored> (&values)[4][kValuePieces]) {
#pragma unroll
    for (int head = 0; head < 2; ++head) {
      float top = larger(scores[head], scores[2 + head]);
#pragma unroll
      for (int distance = 4; distance < 32; distance *= 2)
        top = larger(from_lane_across(top, distance), top);
      top = larger(top, tops[head]);
      const float factor = power_of_two(tops[head] - top);
      tops[head] = top;
      divisors[head] *= factor;
#pragma unroll
      for (float(&tile)[4] : sums) {
        tile[head] *= factor;
        tile[2 + head] *= factor;
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float& score = scores[half * 2 + head];
        score = power_of_two(score - top);
        divisors[head] += score;
        score *= value_scales[half];
      }
    }
    const uint32_t weights[2] = {transposed(bf16_pair(scores[0], scores[1])),
                                 transposed(bf16_pair(scores[2], scores[3]))};
#pragma unroll
    for (int piece = 0; piece < kValuePieces; ++piece) {
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        uint32_t tile[4];
        interleave(values[0][piece], values[1][piece], pair, tile[0], tile[1]);
        interleave(values[2][piece], values[3][piece], pair, tile[2], tile[3]);
        multiply_add_tile(sums[piece * 4 + pair], tile, weights[0], weights[1]);
      }
    }
  }

  // Sums the divisors over all lanes' keys.
  CONVOY_DEVICE void join_lanes() {
#pragma unroll
    for (float& divisor : divisors)
#pragma unroll
      for (int distance = 4; distance < 32; distance *= 2)
        divisor += from_lane_across(divisor, distance);
  }

  // The sums of `head` (0 or 1) over 8 neighbouring features.
  CONVOY_DEVICE void write_sums(int head, int piece, float* to) const {
    float features[kElements];
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      features[2 * pair] = sums[piece * 4 + pair][head];
      features[2 * pair + 1] = sums[piece * 4 + pair][2 + head];
    }
    store(to, features);
  }
};

// The results of a block's warps for one part.
template <int kHeadDim>
struct WarpSums {
  static constexpr int kStride = kHeadDim + 4;  // spreads the heads over the banks
  alignas(16) float sums[kBlockWarps][kHeads][kStride];
  float tops[kBlockWarps][kHeads], divisors[kBlockWarps][kHeads];
};

// A thread takes four features of a head.
template <int kHeadDim>
CONVOY_DEVICE void join_warps(const PagedDecodeLaunch& launch, const Part& part,
                              const WarpSums<kHeadDim>& of) {
  constexpr uint32_t kFeatures = 4;
  for (uint32_t at = thread_of_block() * kFeatures; at < part.num_heads * kHeadDim;
       at += kBlockThreads * kFeatures) {
    const uint32_t head = at / kHeadDim, first = at % kHeadDim;
    float top = kLowest, divisor = 0, sums[kFeatures] = {};
#pragma unroll
    for (uint32_t warp = 0; warp < kBlockWarps; ++warp) top = larger(of.tops[warp][head], top);
#pragma unroll
    for (uint32_t warp = 0; warp < kBlockWarps; ++warp) {
      const float factor = power_of_two(of.tops[warp][head] - top);
      divisor = __builtin_fmaf(of.divisors[warp][head], factor, divisor);
      float own[kFeatures];
      load(&of.sums[warp][head][first], own);
#pragma unroll
      for (uint32_t i = 0; i < kFeatures; ++i) sums[i] = __builtin_fmaf(own[i], factor, sums[i]);
    }
#pragma unroll
    for (uint32_t i = 0; i < kFeatures; ++i)
      write_sum<Bf16>(launch, part, head, first + i, {sums[i], top, divisor});
  }
}

template <class Stored, int kHeadDim>
CONVOY_DEVICE void attend_part(const PagedDecodeLaunch& launch, const Part& part) {
  CONVOY_SHARED WarpSums<kHeadDim> of_warps;
  const uint32_t warp = thread_of_block() / kWarpThreads;
  const uint32_t begin = first_visible_key(keys_of(part.row), launch.window);
  const uint32_t kv_head = part.kv_head, end = part.end_key;

  WarpAttention<Stored, kHeadDim> own(launch, part);
  const uint32_t seen = begin > part.first_key ? begin / kTileKeys * kTileKeys : part.first_key;
  const int32_t* const blocks =
      launch.block_table + uint64_t{launch.table_width} * static_cast<uint32_t>(part.row.table_row);
  for (uint32_t first = seen + warp * kTileKeys; first < end; first += kKeyStep)
    own.take(blocks, kv_head, first, begin, end);

  own.join_lanes();
  wait_for_block();  // the sums of the part before have been read
#pragma unroll
  for (int head = 0; head < 2; ++head) {
    const uint32_t of_part = own.quarter * 2 + head;
    if (own.group == 0) {
      of_warps.tops[warp][of_part] = own.tops[head];
      of_warps.divisors[warp][of_part] = own.divisors[head];
    }
#pragma unroll
    for (int piece = 0; piece < own.kValuePieces; ++piece)
      own.write_sums(head, piece,
                     &of_warps.sums[warp][of_part][piece * 64 + own.group * kElements]);
  }
  wait_for_block();
  join_warps<kHeadDim>(launch, part, of_warps);
}

template <class Stored, int kHeadDim>
CONVOY_DEVICE void decode(const PagedDecodeLaunch& launch) {
  for_parts(launch, [&](const Part& part) { attend_part<Stored, kHeadDim>(launch, part); });
}

}  // namespace

// Two blocks on a multiprocessor: one loads while the other joins its warps.
#define CONVOY_PAGED_GROUP(Stored, name, head_dim)                                            \
  CONVOY_KERNEL __attribute__((launch_bounds(                                                 \
      kBlockThreads, 2))) void paged_group_##head_dim##name(const PagedDecodeLaunch launch) { \
    decode<Stored, head_dim>(launch);                                                         \
  }
CONVOY_PAGED_GROUP(Bf16, _bf16, 64)
CONVOY_PAGED_GROUP(Bf16, _bf16, 128)
CONVOY_PAGED_GROUP(Int8, _int8_bf16, 64)
CONVOY_PAGED_GROUP(Int8, _int8_bf16, 128)
#undef CONVOY_PAGED_GROUP

}  // namespace convoy::kernels::gpu
