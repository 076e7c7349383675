// SPDX-License-Identifier: Apache-2.0
//
// Attention of one new token per row over a paged cache. A block of threads takes a share of all
// keys. It goes through one row and kv head after another, for up to kHeads query heads at once, so
// that keys and values are read once for a group. A team of 8, 16 or 32 lanes holds one token: each
// lane holds kThreadElements elements of a head. Softmax runs online in base 2; a second kernel
// joins the parts of a row in several shares. Reference: paged_attention_aten.cpp. Flash-Decoding:
// Dao et al., 2023.
#include "convoy/model/kernels/cuda/functions.cuh"
#include "convoy/model/kernels/cuda/teams.cuh"
#include "convoy/model/kernels/paged_attention/paged_shares.cuh"

namespace convoy::kernels::gpu {
namespace {

// Exchanges by bits, because a choice between elements of an array would put the array into the
// thread's memory.
CONVOY_DEVICE void exchange_if(bool condition, float& a, float& b) {
  const uint32_t different = condition ? as_bits(a) ^ as_bits(b) : 0;
  a = as_float(as_bits(a) ^ different);
  b = as_float(as_bits(b) ^ different);
}

// Sums `values` over a team of 2 * distance lanes. Each lane gets the sum of one value: lane l of
// the team gets index l / (team / kCount).
template <int kCount>
CONVOY_DEVICE float scattered_sum(const float (&values)[kCount], uint32_t lane, uint32_t distance) {
  if constexpr (kCount == 1) {
    float sum = values[0];
    for (; distance > 0; distance /= 2) sum += from_lane_across(sum, static_cast<int>(distance));
    return sum;
  } else {
    constexpr int kHalf = kCount / 2;
    const bool is_upper = (lane & distance) != 0;
    float kept[kHalf];
#pragma unroll
    for (int at = 0; at < kHalf; ++at) {
      float own = values[at], given = values[at + kHalf];
      exchange_if(is_upper, own, given);
      kept[at] = own + from_lane_across(given, static_cast<int>(distance));
    }
    return scattered_sum<kHalf>(kept, lane, distance / 2);
  }
}

// Lanes that hold one token together.
struct TokenTeam {
  uint32_t lanes, lane, number, teams;  // `teams`: number in a warp; `lane`: number within the warp

  CONVOY_DEVICE explicit TokenTeam(uint32_t head_dim)
      : lanes(head_dim <= 64    ? 8
              : head_dim <= 128 ? 16
                                : 32),
        lane(thread_of_block() % kWarpThreads),
        number(lane / lanes),
        teams(kWarpThreads / lanes) {}
  CONVOY_DEVICE uint32_t element() const { return lane % lanes * kElements; }
  // The lane of this team that keeps score `head` of kHeads.
  template <int kHeads>
  CONVOY_DEVICE uint32_t owner(uint32_t head) const {
    return number * lanes + head * (lanes / kHeads);
  }
};

// The share of one team in the attention of kHeads heads: sums of values weighed by 2^(score -
// top). `top` and `divisor` belong to the head that the lane owns.
template <class Element, class Stored, int kHeads>
struct TeamAttention {
  // Tokens that a team has in flight at once. With many heads, more tokens would need so many
  // registers that a multiprocessor holds only one block.
  static constexpr int kTogether = kHeads >= 4 ? 2 : 4;

  const PagedDecodeLaunch& launch;
  const TokenTeam team;
  const bool has_elements;
  float q[kHeads][kElements];
  float sums[kHeads][kElements];
  float top = kLowest;
  float divisor = 0;

  CONVOY_DEVICE TeamAttention(const PagedDecodeLaunch& of, const DecodeRow& row,
                              uint32_t first_head, uint32_t num_heads)
      : launch(of), team(of.pool.head_dim), has_elements(team.element() < of.pool.head_dim) {
#pragma unroll
    for (int head = 0; head < kHeads; ++head) {
#pragma unroll
      for (int at = 0; at < kElements; ++at) q[head][at] = sums[head][at] = 0;
      if (!has_elements || static_cast<uint32_t>(head) >= num_heads) continue;
      Piece<Element> piece;
      piece.read(static_cast<const Element*>(launch.q) + row.token * launch.q_token_stride +
                 (first_head + head) * launch.q_head_stride + team.element());
#pragma unroll
      for (int at = 0; at < kElements; ++at) q[head][at] = piece.at(at) * launch.scale_for_base_2;
    }
  }

  CONVOY_DEVICE float score(const Piece<Stored>& key) const {
    float products[kHeads];
#pragma unroll
    for (int head = 0; head < kHeads; ++head) {
      float product = 0;
#pragma unroll
      for (int at = 0; at < kElements; ++at)
        product = __builtin_fmaf(q[head][at], key.at(at), product);
      products[head] = product;
    }
    return scattered_sum<kHeads>(products, team.lane, team.lanes / 2);
  }

  // Takes the tokens `first` + n * teams + this team's number for n < kTogether, as far as they are
  // in [begin, end). All of them are in one block of the cache.
  CONVOY_DEVICE void take(const int32_t* blocks, uint32_t kv_head, uint32_t first, uint32_t begin,
                          uint32_t end) {
    const PagedPool& pool = launch.pool;
    const auto block = static_cast<uint64_t>(blocks[first / pool.block_tokens]);
    const uint64_t slot = block * pool.block_tokens + first % pool.block_tokens + team.number;
    Piece<Stored> keys[kTogether], values[kTogether];
    float scores[kTogether], value_scales[kTogether];
#pragma unroll
    for (int n = 0; n < kTogether; ++n) {
      const uint32_t token = first + n * team.teams + team.number;
      keys[n].clear();
      values[n].clear();
      value_scales[n] = 1;
      if (token < begin || token >= end || !has_elements) continue;
      const uint64_t place = ((slot + n * team.teams) * pool.kv_heads + kv_head) * pool.head_dim;
      keys[n].read(static_cast<const Stored*>(pool.keys) + place + team.element());
      values[n].read(static_cast<const Stored*>(pool.values) + place + team.element());
    }
#pragma unroll
    for (int n = 0; n < kTogether; ++n) {
      const uint32_t token = first + n * team.teams + team.number;
      scores[n] = score(keys[n]);
      if (token < begin || token >= end) {
        scores[n] = -kInfinity;
      } else if constexpr (std::is_same_v<Stored, Int8>) {
        const uint64_t scale = (slot + n * team.teams) * pool.kv_heads + kv_head;
        scores[n] *= pool.key_scales[scale];
        value_scales[n] = pool.value_scales[scale];
      }
    }
    weigh(scores, value_scales, values);
  }

  CONVOY_DEVICE void weigh(const float (&scores)[kTogether], const float (&value_scales)[kTogether],
                           const Piece<Stored> (&values)[kTogether]) {
    float new_top = top;
#pragma unroll
    for (const float score : scores) new_top = larger(score, new_top);
    rescale(new_top);
    float weights[kTogether];
#pragma unroll
    for (int n = 0; n < kTogether; ++n) {
      weights[n] = power_of_two(scores[n] - new_top);
      divisor += weights[n];
      if constexpr (std::is_same_v<Stored, Int8>) weights[n] *= value_scales[n];
    }
#pragma unroll
    for (int n = 0; n < kTogether; ++n) {
#pragma unroll
      for (int head = 0; head < kHeads; ++head) {
        const float weight = from_lane(weights[n], team.owner<kHeads>(head));
#pragma unroll
        for (int at = 0; at < kElements; ++at)
          sums[head][at] = __builtin_fmaf(weight, values[n].at(at), sums[head][at]);
      }
    }
  }

  CONVOY_DEVICE void rescale(float new_top) {
    const float factor = power_of_two(top - new_top);
    top = new_top;
    divisor *= factor;
#pragma unroll
    for (int head = 0; head < kHeads; ++head) {
      const float of_head = from_lane(factor, team.owner<kHeads>(head));
#pragma unroll
      for (int at = 0; at < kElements; ++at) sums[head][at] *= of_head;
    }
  }

  // Afterwards every team of the warp has the sums of all teams.
  CONVOY_DEVICE void join_teams() {
    for (uint32_t distance = team.lanes; distance < kWarpThreads; distance *= 2) {
      const auto across = static_cast<int>(distance);
      rescale(larger(from_lane_across(top, across), top));
      divisor += from_lane_across(divisor, across);
#pragma unroll
      for (int head = 0; head < kHeads; ++head)
#pragma unroll
        for (int at = 0; at < kElements; ++at)
          sums[head][at] += from_lane_across(sums[head][at], across);
    }
  }
};

template <class Element, class Stored, int kHeads>
CONVOY_DEVICE void attend_part(const PagedDecodeLaunch& launch, const Part& part) {
  CONVOY_SHARED float sums[kBlockWarps][kLargestHeadDim];
  CONVOY_SHARED float tops[kBlockWarps][kHeads];
  CONVOY_SHARED float divisors[kBlockWarps][kHeads];
  const uint32_t warp = thread_of_block() / kWarpThreads;
  const uint32_t begin = first_visible_key(keys_of(part.row), launch.window);
  const uint32_t kv_head = part.kv_head, end = part.end_key;

  TeamAttention<Element, Stored, kHeads> own(launch, part.row, part.first_head, part.num_heads);
  const TokenTeam& team = own.team;
  const uint32_t step = own.kTogether * team.teams;
  const uint32_t seen = begin > part.first_key ? begin / step * step : part.first_key;
  const int32_t* blocks =
      launch.block_table + uint64_t{launch.table_width} * static_cast<uint32_t>(part.row.table_row);
  for (uint32_t first = seen + warp * step; first < end; first += kBlockWarps * step)
    own.take(blocks, kv_head, first, begin, end);
  own.join_teams();

  const uint32_t lanes_of_head = team.lanes / kHeads;
  if (team.lane < team.lanes && team.lane % lanes_of_head == 0) {
    tops[warp][team.lane / lanes_of_head] = own.top;
    divisors[warp][team.lane / lanes_of_head] = own.divisor;
  }
  wait_for_block();
#pragma unroll
  for (int head = 0; head < kHeads; ++head) {
    float top = kLowest;
    for (uint32_t from = 0; from < kBlockWarps; ++from) top = larger(tops[from][head], top);
    if (team.lane < team.lanes) {
      const float factor = power_of_two(tops[warp][head] - top);
#pragma unroll
      for (int at = 0; at < kElements; ++at)
        sums[warp][team.element() + at] = own.sums[head][at] * factor;
    }
    wait_for_block();
    const uint32_t element = thread_of_block();
    if (element < launch.pool.head_dim && static_cast<uint32_t>(head) < part.num_heads) {
      float sum = 0, divisor = 0;
      for (uint32_t from = 0; from < kBlockWarps; ++from) {
        sum += sums[from][element];
        divisor += divisors[from][head] * power_of_two(tops[from][head] - top);
      }
      write_sum<Element>(launch, part, static_cast<uint32_t>(head), element, {sum, top, divisor});
    }
    wait_for_block();  // shared memory is free for the next head
  }
}

template <class Element, class Stored, int kHeads>
CONVOY_DEVICE void decode(const PagedDecodeLaunch& launch) {
  for_parts(launch, [&](const Part& part) { attend_part<Element, Stored, kHeads>(launch, part); });
}

// A block joins the parts of one head of one row.
template <class Element>
CONVOY_DEVICE void join_parts(const PagedDecodeLaunch& launch) {
  const RowTasks tasks = tasks_of(launch);
  const uint64_t all = uint64_t{launch.num_rows} * launch.heads;
  const uint32_t element = thread_of_block();
  if (element >= launch.pool.head_dim) return;
  for (uint64_t number = nvidia::block_number(); number < all; number += nvidia::num_blocks()) {
    const uint64_t row = number / launch.heads;
    const auto head = static_cast<uint32_t>(number % launch.heads);
    const uint32_t task = tasks.of_head(head);
    const DecodeRow of_row = launch.rows[row];
    const HeadParts parts = launch.parts[row * tasks.count + task];
    if (of_row.keys == 0 || parts.count == 1) continue;
    const auto place_of = [&](uint32_t part) {
      const uint64_t place = 2 * uint64_t{parts.first_share + part} + (part == 0 ? 1 : 0);
      return place * launch.task_heads + (head - tasks.first_head(task));
    };
    float top = kLowest, sum = 0, divisor = 0;
    for (uint32_t part = 0; part < parts.count; ++part)
      top = larger(launch.partial_tops[place_of(part)], top);
    for (uint32_t part = 0; part < parts.count; ++part) {
      const uint64_t place = place_of(part);
      const float factor = power_of_two(launch.partial_tops[place] - top);
      sum =
          __builtin_fmaf(launch.partial_sums[place * launch.pool.head_dim + element], factor, sum);
      divisor = __builtin_fmaf(launch.partial_divisors[place], factor, divisor);
    }
    const float result[1] = {quotient(sum, divisor)};
    store(static_cast<Element*>(launch.out) + result_place(launch, of_row, head) + element, result);
  }
}

struct Largest {
  float value, poison;  // `poison`: NaN where a number is not finite, else 0

  CONVOY_DEVICE void join(const Largest& other) {
    value = larger(other.value, value);
    poison += other.poison;
  }
  CONVOY_DEVICE Largest across(int distance) const {
    return {from_lane_across(value, distance), from_lane_across(poison, distance)};
  }
};

// The integer nearest to `value`, ties to even; 0 for NaN.
CONVOY_DEVICE uint32_t int8_bits(float value) {
  const float whole = __builtin_rintf(value);
  return whole != whole ? 0 : static_cast<uint32_t>(static_cast<int32_t>(whole)) & 0xff;
}

// The kElements features that a lane holds of one head of a token; a warp holds the whole head.
template <class Element>
struct HeadPiece {
  const uint32_t head_dim;
  const uint32_t element = WarpTeam::thread() * kElements;
  const bool has_elements = element < head_dim;
  float values[kElements];

  CONVOY_DEVICE HeadPiece(const Element* from, uint32_t size) : head_dim(size) {
    read(from, values);
  }

  // Elements beyond the head become zeros.
  CONVOY_DEVICE void read(const Element* from, float (&to)[kElements]) const {
    Piece<Element> piece;
    piece.clear();
    if (has_elements) piece.read(from + element);
#pragma unroll
    for (int at = 0; at < kElements; ++at) to[at] = piece.at(at);
  }

  CONVOY_DEVICE void normalise(const void* weight, const PagedStoreLaunch& launch) {
    float squares = 0, scale[kElements];
#pragma unroll
    for (const float value : values) squares = __builtin_fmaf(value, value, squares);
    const float mean =
        __nvvm_div_rn_f(joined_over_warp(Sum{squares}).value, static_cast<float>(head_dim));
    const float inverse = inverse_root(mean + launch.epsilon);
    read(static_cast<const Element*>(weight), scale);
#pragma unroll
    for (int at = 0; at < kElements; ++at)
      values[at] = rounded<Element>(
          scaled_norm<Element>(values[at] * inverse, scale[at], launch.scale_by_one_plus != 0));
  }

  // `table_row`: the row of the token's position in both tables.
  CONVOY_DEVICE void rotate(const float* cos, const float* sin, uint64_t table_row) {
    const uint32_t half = head_dim / 2, lanes = half / kElements;
    const bool is_second = element >= half;
    const uint32_t other =
        (WarpTeam::thread() + (is_second ? kWarpThreads - lanes : lanes)) % kWarpThreads;
    float cosines[kElements] = {}, sines[kElements] = {};
    if (has_elements) {
      const uint64_t place = table_row * half + (is_second ? element - half : element);
      load(cos + place, cosines);
      load(sin + place, sines);
    }
#pragma unroll
    for (int at = 0; at < kElements; ++at) {
      const float partner = from_lane(values[at], other);
      const float turned = is_second ? sines[at] : -sines[at];
      values[at] = rounded<Element>(values[at] * cosines[at] + partner * turned);
    }
  }

  CONVOY_DEVICE void write(Element* to) const {
    if (has_elements) store(to + element, values);
  }
  // Writes the elements to `place` of the cache.
  template <class Stored>
  CONVOY_DEVICE void write_stored(void* to, float* scales, uint64_t place) const {
    if constexpr (std::is_same_v<Stored, Int8>) {
      Largest largest{0, 0};
#pragma unroll
      for (const float value : values) largest.join({__builtin_fabsf(value), value * 0});
      largest = joined_over_warp(largest);
      const float scale = __nvvm_div_rn_f(largest.value, 127.0f) + largest.poison;
      uint32_t words[2] = {0, 0};
#pragma unroll
      for (int at = 0; at < kElements; ++at)
        words[at / 4] |= int8_bits(__nvvm_div_rn_f(values[at], scale)) << (at % 4 * 8);
      if (has_elements)
        store_words<Words2>(static_cast<Int8*>(to) + place * head_dim + element, words);
      if (WarpTeam::thread() == 0) scales[place] = scale;
    } else {
      write(static_cast<Element*>(to) + place * head_dim);
    }
  }
};

// Queries, keys and values of each token: a warp takes one head of one query, key or value.
template <class Element, class Stored>
CONVOY_DEVICE void store_tokens(const PagedStoreLaunch& launch) {
  const PagedPool& pool = launch.pool;
  const uint64_t heads_of_token = launch.query_heads + 2 * uint64_t{pool.kv_heads};
  const uint64_t first_value = launch.query_heads + pool.kv_heads;
  const uint64_t rows = launch.tokens * heads_of_token;
  for (uint64_t row = WarpTeam::first_row(); row < rows; row += WarpTeam::row_step()) {
    const uint64_t token = row / heads_of_token, number = row % heads_of_token;
    const auto head_at = [&](const void* from, int64_t token_stride, int64_t head_stride,
                             uint64_t head) {
      return static_cast<const Element*>(from) + static_cast<int64_t>(token) * token_stride +
             static_cast<int64_t>(head) * head_stride;
    };
    if (number >= first_value) {
      const uint64_t head = number - first_value;
      const HeadPiece<Element> piece(
          head_at(launch.values, launch.value_token_stride, launch.value_head_stride, head),
          pool.head_dim);
      piece.template write_stored<Stored>(
          pool.values, pool.value_scales,
          static_cast<uint64_t>(launch.slots[token]) * pool.kv_heads + head);
      continue;
    }
    const bool is_key = number >= launch.query_heads;
    const uint64_t head = is_key ? number - launch.query_heads : number;
    HeadPiece<Element> piece(
        is_key ? head_at(launch.keys, launch.key_token_stride, launch.key_head_stride, head)
               : head_at(launch.queries, launch.query_token_stride, launch.query_head_stride, head),
        pool.head_dim);
    const void* const norm = is_key ? launch.key_norm : launch.query_norm;
    if (norm != nullptr) piece.normalise(norm, launch);
    if (launch.cos != nullptr)
      piece.rotate(launch.cos, launch.sin, static_cast<uint64_t>(launch.positions[token]));
    if (is_key)
      piece.template write_stored<Stored>(
          pool.keys, pool.key_scales,
          static_cast<uint64_t>(launch.slots[token]) * pool.kv_heads + head);
    else
      piece.write(static_cast<Element*>(launch.transformed_queries) +
                  (token * launch.query_heads + head) * pool.head_dim);
  }
}

}  // namespace

#define CONVOY_PAGED_DECODE(Element, Stored, name, heads, blocks)                                \
  CONVOY_KERNEL __attribute__((launch_bounds(                                                    \
      kBlockThreads, blocks))) void paged_decode_##heads##name(const PagedDecodeLaunch launch) { \
    decode<Element, Stored, heads>(launch);                                                      \
  }
// The last argument: number of blocks that a multiprocessor must hold at once, which bounds the
// registers.
#define CONVOY_PAGED_STORED(Element, Stored, name)                      \
  CONVOY_PAGED_DECODE(Element, Stored, name, 1, 2)                      \
  CONVOY_PAGED_DECODE(Element, Stored, name, 2, 2)                      \
  CONVOY_PAGED_DECODE(Element, Stored, name, 4, 1)                      \
  CONVOY_PAGED_DECODE(Element, Stored, name, 8, 1)                      \
  CONVOY_KERNEL void paged_store##name(const PagedStoreLaunch launch) { \
    store_tokens<Element, Stored>(launch);                              \
  }
#define CONVOY_PAGED(Element, type)                                      \
  CONVOY_PAGED_STORED(Element, Element, _##type)                         \
  CONVOY_PAGED_STORED(Element, Int8, _int8_##type)                       \
  CONVOY_KERNEL void paged_join_##type(const PagedDecodeLaunch launch) { \
    join_parts<Element>(launch);                                         \
  }

CONVOY_PAGED(float, fp32)
CONVOY_PAGED(Bf16, bf16)

}  // namespace convoy::kernels::gpu
