// SPDX-License-Identifier: Apache-2.0
#include "fake_cuda/ptx_operations.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace convoy::testing {
namespace {

using Numbers = uint64_t*;

template <class T>
T read(uint64_t bits) {
  if constexpr (sizeof(T) < 4) return static_cast<T>(bits);
  if constexpr (sizeof(T) == 4) return std::bit_cast<T>(static_cast<uint32_t>(bits));
  if constexpr (sizeof(T) == 8) return std::bit_cast<T>(bits);
}

template <class T>
uint64_t bits_of(T value) {
  if constexpr (sizeof(T) < 4) return std::make_unsigned_t<T>(value);
  if constexpr (sizeof(T) == 4) return std::bit_cast<uint32_t>(value);
  if constexpr (sizeof(T) == 8) return std::bit_cast<uint64_t>(value);
}

template <class T, class Function>
void binary(const PtxInstruction& i, Numbers n, Function function) {
  n[i.to[0]] = bits_of<T>(function(read<T>(n[i.from[0]]), read<T>(n[i.from[1]])));
}

#define BINARY(type, expression)                                           \
  [](const PtxInstruction& i, Numbers n, PtxMemory&) {                     \
    binary<type>(i, n, [](type a, type b) -> type { return expression; }); \
  }
#define COMPARE(type, expression)                                          \
  [](const PtxInstruction& i, Numbers n, PtxMemory&) {                     \
    const type a = read<type>(n[i.from[0]]), b = read<type>(n[i.from[1]]); \
    n[i.to[0]] = (expression) ? 1 : 0;                                     \
  }
#define UNARY(to_type, from_type, expression)          \
  [](const PtxInstruction& i, Numbers n, PtxMemory&) { \
    const from_type a = read<from_type>(n[i.from[0]]); \
    n[i.to[0]] = bits_of<to_type>(expression);         \
  }

void move(const PtxInstruction& i, Numbers n, PtxMemory&) { n[i.to[0]] = n[i.from[0]]; }

// mov.b64 {low, high}, x: splits x.
template <int kBits>
void split(const PtxInstruction& i, Numbers n, PtxMemory&) {
  const uint64_t both = n[i.from[0]];
  n[i.to[0]] = both & ((uint64_t{1} << kBits / 2) - 1);
  n[i.to[1]] = both >> kBits / 2;
}

template <int kBits>
void join(const PtxInstruction& i, Numbers n, PtxMemory&) {
  n[i.to[0]] = n[i.from[0]] | n[i.from[1]] << kBits / 2;
}

void select(const PtxInstruction& i, Numbers n, PtxMemory&) {
  n[i.to[0]] = n[i.from[2]] != 0 ? n[i.from[0]] : n[i.from[1]];
}

template <class T>
void multiply_add(const PtxInstruction& i, Numbers n, PtxMemory&) {
  n[i.to[0]] =
      bits_of<T>(std::fma(read<T>(n[i.from[0]]), read<T>(n[i.from[1]]), read<T>(n[i.from[2]])));
}

void multiply_add_integer(const PtxInstruction& i, Numbers n, PtxMemory&) {
  n[i.to[0]] = static_cast<uint32_t>(n[i.from[0]] * n[i.from[1]] + n[i.from[2]]);
}

// Bit n of the table is the result for inputs with the bits of n: the highest bit from a, the
// lowest from c.
void look_up_bits(const PtxInstruction& i, Numbers n, PtxMemory&) {
  const auto a = static_cast<uint32_t>(n[i.from[0]]), b = static_cast<uint32_t>(n[i.from[1]]),
             c = static_cast<uint32_t>(n[i.from[2]]);
  uint32_t bits = 0;
  for (int number = 0; number < 8; ++number)
    if (n[i.from[3]] >> number & 1)
      bits |= (number & 4 ? a : ~a) & (number & 2 ? b : ~b) & (number & 1 ? c : ~c);
  n[i.to[0]] = bits;
}

// Each result byte is one of eight input bytes, chosen by the lower three of four selector bits.
// The fourth bit, which repeats a sign, is not supported.
void permute_bytes(const PtxInstruction& i, Numbers n, PtxMemory&) {
  const uint64_t bytes = n[i.from[1]] << 32 | static_cast<uint32_t>(n[i.from[0]]);
  uint32_t chosen = 0;
  for (int at = 0; at < 4; ++at) {
    const uint64_t selector = n[i.from[2]] >> 4 * at & 15;
    if (selector > 7) throw PtxError("prmt with a sign is not known");
    chosen |= static_cast<uint32_t>(bytes >> 8 * selector & 0xff) << 8 * at;
  }
  n[i.to[0]] = chosen;
}

void extract_bits(const PtxInstruction& i, Numbers n, PtxMemory&) {
  const auto length = static_cast<uint32_t>(n[i.from[2]]);
  const uint32_t shifted = static_cast<uint32_t>(n[i.from[0]]) >> n[i.from[1]];
  n[i.to[0]] = length >= 32 ? shifted : shifted & ((1u << length) - 1);
}

void extract_signed_bits(const PtxInstruction& i, Numbers n, PtxMemory&) {
  const auto first = static_cast<uint32_t>(n[i.from[1]]),
             length = static_cast<uint32_t>(n[i.from[2]]);
  const auto moved =
      static_cast<int32_t>(static_cast<uint32_t>(n[i.from[0]]) << (32 - first - length));
  n[i.to[0]] = static_cast<uint32_t>(moved >> (32 - length));
}

enum class Space { Own, Global, Shared };  // Own: the thread's memory or the parameters

template <class T, Space kSpace>
uint8_t* place_of(const PtxInstruction& i, Numbers n, bool writes, PtxMemory& memory) {
  const uint64_t address = n[i.from[0]] + static_cast<uint64_t>(i.offset);
  if constexpr (kSpace == Space::Global) {
    memory.count(address, i.count * sizeof(T), writes);
    memory.use_global(address, i.count * sizeof(T), writes);
    return memory.global(i.place, address, i.count * sizeof(T));
  } else if constexpr (kSpace == Space::Shared)
    return memory.shared(address, i.count * sizeof(T), writes);
  else
    return reinterpret_cast<uint8_t*>(address);
}

template <class T, Space kSpace>
void load(const PtxInstruction& i, Numbers n, PtxMemory& memory) {
  const uint8_t* const from = place_of<T, kSpace>(i, n, false, memory);
  for (uint32_t at = 0; at < i.count; ++at) {
    T value;
    std::memcpy(&value, from + at * sizeof value, sizeof value);
    n[i.to[at]] = value;
  }
}

template <class T, Space kSpace>
void store(const PtxInstruction& i, Numbers n, PtxMemory& memory) {
  uint8_t* const to = place_of<T, kSpace>(i, n, true, memory);
  for (uint32_t at = 0; at < i.count; ++at) {
    const T value = static_cast<T>(n[i.from[1 + at]]);
    std::memcpy(to + at * sizeof value, &value, sizeof value);
  }
}

template <class T>
void atomic_add(const PtxInstruction& i, Numbers n, PtxMemory& memory) {
  uint8_t* const place = place_of<T, Space::Global>(i, n, true, memory);
  T before;
  std::memcpy(&before, place, sizeof before);
  const T after = before + static_cast<T>(n[i.from[1]]);
  std::memcpy(place, &after, sizeof after);
  n[i.to[0]] = before;
}

void start_copy(const PtxInstruction& i, Numbers n, PtxMemory& memory) {
  memory.start_copy(i.place, n[i.from[0]], n[i.from[1]], n[i.from[2]]);
}
void end_copies(const PtxInstruction&, Numbers, PtxMemory& memory) { memory.end_copies(); }
void wait_for_copies(const PtxInstruction& i, Numbers n, PtxMemory& memory) {
  memory.wait_for_copies(n[i.from[0]]);
}

// Converts as a GPU does: to the nearest number of the type, and NaN to 0.
int32_t truncated(float value) {
  if (value != value) return 0;
  if (value >= 0x1p31f) return INT32_MAX;
  return value <= -0x1p31f ? INT32_MIN : static_cast<int32_t>(value);
}

double to_nearest(double value) { return std::nearbyint(value); }

// Rounds to nearest, ties to even. Every NaN becomes the NaN that GPUs return.
uint32_t bf16_of(double value) {
  if (value != value) return 0x7fff;
  constexpr int kBits = 8, kLeastExponent = -133;
  if (value == 0 || std::isinf(value))
    return std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16;
  const int exponent = std::max(std::ilogb(value) + 1 - kBits, kLeastExponent);
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
  return std::bit_cast<uint32_t>(static_cast<float>(rounded)) >> 16;
}

double of_bf16(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits << 16)); }

// fma.rn.bf16x2: computes both halves, each with one rounding.
void multiply_add_pair(const PtxInstruction& i, Numbers n, PtxMemory&) {
  uint32_t both = 0;
  for (const int shift : {0, 16})
    both |= bf16_of(std::fma(of_bf16(n[i.from[0]] >> shift), of_bf16(n[i.from[1]] >> shift),
                             of_bf16(n[i.from[2]] >> shift)))
            << shift;
  n[i.to[0]] = both;
}

// cvt.rn.bf16x2.f32: the first operand goes to the upper half.
void round_pair(const PtxInstruction& i, Numbers n, PtxMemory&) {
  n[i.to[0]] = bf16_of(read<float>(n[i.from[0]])) << 16 | bf16_of(read<float>(n[i.from[1]]));
}

using Table = std::map<std::string, PtxInstruction::Run>;

void add_moves(Table& table) {
  for (const char* type :
       {"u16", "b16", "u32", "b32", "s32", "f32", "u64", "b64", "s64", "f64", "pred"})
    table[fmt::format("mov.{}", type)] = move;
  for (const char* type : {"u16", "b16", "u32", "b32", "s32", "f32", "u64", "b64", "s64", "f64"})
    table[fmt::format("selp.{}", type)] = select;
  table["mov.b64.split"] = split<64>;
  table["mov.b32.split"] = split<32>;
  table["mov.b64.join"] = join<64>;
  table["mov.b32.join"] = join<32>;
  for (const char* name : {"cvta.to.global.u64", "cvta.to.shared.u64", "cvta.shared.u64",
                           "cvta.local.u64", "cvta.global.u64"})
    table[name] = move;
}

template <class T>
void add_memory_of(Table& table, const char* type) {
  table[fmt::format("ld.param.{}", type)] = load<T, Space::Own>;
  table[fmt::format("ld.global.{}", type)] = load<T, Space::Global>;
  table[fmt::format("st.global.{}", type)] = store<T, Space::Global>;
  table[fmt::format("ld.shared.{}", type)] = load<T, Space::Shared>;
  table[fmt::format("st.shared.{}", type)] = store<T, Space::Shared>;
  table[fmt::format("ld.local.{}", type)] = table[fmt::format("ld.{}", type)] = load<T, Space::Own>;
  table[fmt::format("st.local.{}", type)] = table[fmt::format("st.{}", type)] =
      store<T, Space::Own>;
}

void add_memory(Table& table) {
  for (const char* type : {"u8", "b8"}) add_memory_of<uint8_t>(table, type);
  for (const char* type : {"u16", "b16"}) add_memory_of<uint16_t>(table, type);
  for (const char* type : {"u32", "b32", "s32", "f32"}) add_memory_of<uint32_t>(table, type);
  for (const char* type : {"u64", "b64", "s64", "f64"}) add_memory_of<uint64_t>(table, type);
  table["cp.async.cg.shared.global"] = table["cp.async.ca.shared.global"] = start_copy;
  table["cp.async.commit_group"] = end_copies;
  table["cp.async.wait_group"] = wait_for_copies;
  table["atom.global.add.u32"] = table["atom.add.u32"] = atomic_add<uint32_t>;
  table["atom.global.add.u64"] = table["atom.add.u64"] = atomic_add<uint64_t>;
}

void add_integers(Table& table) {
  table["add.s32"] = table["add.u32"] = BINARY(uint32_t, a + b);
  table["add.s64"] = table["add.u64"] = BINARY(uint64_t, a + b);
  table["sub.s32"] = table["sub.u32"] = BINARY(uint32_t, a - b);
  table["sub.s64"] = table["sub.u64"] = BINARY(uint64_t, a - b);
  table["mul.lo.s32"] = table["mul.lo.u32"] = BINARY(uint32_t, a * b);
  table["mul.lo.s64"] = table["mul.lo.u64"] = BINARY(uint64_t, a * b);
  table["mul.hi.u32"] = BINARY(uint32_t, static_cast<uint32_t>((uint64_t{a} * b) >> 32));
  table["mad.lo.s32"] = table["mad.lo.u32"] = multiply_add_integer;
  table["mul.wide.u16"] =
      BINARY(uint32_t, uint32_t{static_cast<uint16_t>(a)} * uint32_t{static_cast<uint16_t>(b)});
  table["mul.wide.u32"] = [](const PtxInstruction& i, Numbers n, PtxMemory&) {
    n[i.to[0]] =
        uint64_t{static_cast<uint32_t>(n[i.from[0]])} * static_cast<uint32_t>(n[i.from[1]]);
  };
  table["div.u32"] = BINARY(uint32_t, b == 0 ? ~0u : a / b);
  table["rem.u32"] = BINARY(uint32_t, b == 0 ? a : a % b);
  table["div.u64"] = BINARY(uint64_t, b == 0 ? ~uint64_t{0} : a / b);
  table["rem.u64"] = BINARY(uint64_t, b == 0 ? a : a % b);
  table["min.u64"] = BINARY(uint64_t, a < b ? a : b);
  table["max.u64"] = BINARY(uint64_t, a > b ? a : b);
  table["min.u32"] = BINARY(uint32_t, a < b ? a : b);
  table["max.u32"] = BINARY(uint32_t, a > b ? a : b);
  table["min.s32"] = BINARY(int32_t, a < b ? a : b);
  table["max.s32"] = BINARY(int32_t, a > b ? a : b);
  for (const char* bits : {"b16", "b32", "b64", "pred"}) {
    table[fmt::format("and.{}", bits)] = BINARY(uint64_t, a & b);
    table[fmt::format("or.{}", bits)] = BINARY(uint64_t, a | b);
    table[fmt::format("xor.{}", bits)] = BINARY(uint64_t, a ^ b);
  }
  table["neg.s32"] = UNARY(uint32_t, uint32_t, 0 - a);
  table["neg.s64"] = UNARY(uint64_t, uint64_t, 0 - a);
  table["not.b32"] = UNARY(uint32_t, uint32_t, ~a);
  table["not.pred"] = UNARY(uint64_t, uint64_t, a ^ 1);
  table["shl.b32"] = BINARY(uint32_t, b < 32 ? a << b : 0);
  table["shl.b64"] = BINARY(uint64_t, b < 64 ? a << b : 0);
  table["shr.u32"] = BINARY(uint32_t, b < 32 ? a >> b : 0);
  table["shr.u64"] = BINARY(uint64_t, b < 64 ? a >> b : 0);
  table["shr.s32"] = BINARY(int32_t, a >> (b < 32 ? b : 31));
  table["lop3.b32"] = look_up_bits;
  table["prmt.b32"] = permute_bytes;
  table["bfe.u32"] = extract_bits;
  table["bfe.s32"] = extract_signed_bits;
  table["add.s16"] = BINARY(uint16_t, static_cast<uint16_t>(a + b));
  table["sub.s16"] = BINARY(uint16_t, static_cast<uint16_t>(a - b));
  table["mul.lo.s16"] = BINARY(uint16_t, static_cast<uint16_t>(a * b));
  table["shl.b16"] = BINARY(uint16_t, static_cast<uint16_t>(b < 16 ? a << b : 0));
  table["div.u16"] = BINARY(uint16_t, static_cast<uint16_t>(b == 0 ? ~0u : a / b));
}

// IEEE 754 fixes the results of these operations.
void add_floats(Table& table) {
  table["add.rn.f32"] = BINARY(float, a + b);
  table["sub.rn.f32"] = BINARY(float, a - b);
  table["mul.rn.f32"] = BINARY(float, a* b);
  table["fma.rn.f32"] = multiply_add<float>;
  table["div.rn.f32"] = BINARY(float, a / b);
  table["rcp.rn.f32"] = UNARY(float, float, 1 / a);
  table["sqrt.rn.f32"] = UNARY(float, float, std::sqrt(a));
  table["add.rn.f64"] = BINARY(double, a + b);
  table["sub.rn.f64"] = BINARY(double, a - b);
  table["mul.rn.f64"] = BINARY(double, a* b);
  table["div.rn.f64"] = BINARY(double, a / b);
  table["fma.rn.f64"] = multiply_add<double>;
  table["sqrt.rn.f64"] = UNARY(double, double, std::sqrt(a));
  table["neg.f32"] = UNARY(float, float, -a);
  table["neg.f64"] = UNARY(double, double, -a);
  table["abs.f32"] = UNARY(float, float, std::fabs(a));
  table["abs.f64"] = UNARY(double, double, std::fabs(a));
  table["min.f32"] = BINARY(float, std::fmin(a, b));
  table["max.f32"] = BINARY(float, std::fmax(a, b));
  table["fma.rn.bf16x2"] = multiply_add_pair;
  table["cvt.rn.bf16x2.f32"] = round_pair;
  table["min.f64"] = BINARY(double, std::fmin(a, b));
  table["max.f64"] = BINARY(double, std::fmax(a, b));
}

void add_conversions(Table& table) {
  table["cvt.u64.u32"] = UNARY(uint64_t, uint32_t, uint64_t{a});
  table["cvt.s64.s32"] = UNARY(int64_t, int32_t, int64_t{a});
  table["cvt.u32.u64"] = UNARY(uint32_t, uint64_t, static_cast<uint32_t>(a));
  table["cvt.u32.u16"] = UNARY(uint32_t, uint16_t, uint32_t{a});
  table["cvt.u64.u16"] = UNARY(uint64_t, uint16_t, uint64_t{a});
  table["cvt.u16.u32"] = UNARY(uint16_t, uint32_t, static_cast<uint16_t>(a));
  table["cvt.u16.u64"] = UNARY(uint16_t, uint64_t, static_cast<uint16_t>(a));
  table["cvt.rn.f32.u32"] = UNARY(float, uint32_t, static_cast<float>(a));
  table["cvt.rn.f32.u64"] = UNARY(float, uint64_t, static_cast<float>(a));
  table["cvt.rn.f32.s32"] = UNARY(float, int32_t, static_cast<float>(a));
  table["cvt.s32.s8"] = UNARY(uint32_t, int8_t, static_cast<uint32_t>(int32_t{a}));
  table["cvt.rzi.s32.f32"] = UNARY(uint32_t, float, static_cast<uint32_t>(truncated(a)));
  table["cvt.rni.f32.f32"] = UNARY(float, float, std::nearbyint(a));
  table["cvt.rn.f64.u32"] = UNARY(double, uint32_t, static_cast<double>(a));
  table["cvt.f64.f32"] = UNARY(double, float, double{a});
  table["cvt.rni.f64.f64"] = UNARY(double, double, to_nearest(a));
  table["cvt.rpi.f64.f64"] = UNARY(double, double, std::ceil(a));
  table["cvt.rmi.f64.f64"] = UNARY(double, double, std::floor(a));
  table["cvt.rzi.u64.f64"] = UNARY(uint64_t, double, static_cast<uint64_t>(a));
}

void add_comparisons(Table& table) {
#define COMPARE_ALL(name, type)                   \
  table["setp.eq." name] = COMPARE(type, a == b); \
  table["setp.ne." name] = COMPARE(type, a != b); \
  table["setp.lt." name] = COMPARE(type, a < b);  \
  table["setp.le." name] = COMPARE(type, a <= b); \
  table["setp.gt." name] = COMPARE(type, a > b);  \
  table["setp.ge." name] = COMPARE(type, a >= b);
  COMPARE_ALL("u16", uint16_t)
  COMPARE_ALL("s16", int16_t)
  COMPARE_ALL("u32", uint32_t)
  COMPARE_ALL("s32", int32_t)
  COMPARE_ALL("u64", uint64_t)
  COMPARE_ALL("s64", int64_t)
  COMPARE_ALL("f32", float)
  COMPARE_ALL("f64", double)
  for (const char* same : {"eq", "ne"})
    for (const char* bits : {"16", "32", "64"})
      table[fmt::format("setp.{}.b{}", same, bits)] = table[fmt::format("setp.{}.u{}", same, bits)];
  // Comparisons of floats are ordered, except ne. The unordered comparisons are true for NaN.
  table["setp.ne.f32"] = COMPARE(float, a<b || a> b);
  table["setp.ne.f64"] = COMPARE(double, a<b || a> b);
#define COMPARE_UNORDERED(name, type)                         \
  table["setp.equ." name] = COMPARE(type, !(a < b || a > b)); \
  table["setp.neu." name] = COMPARE(type, a != b);            \
  table["setp.ltu." name] = COMPARE(type, !(a >= b));         \
  table["setp.leu." name] = COMPARE(type, !(a > b));          \
  table["setp.gtu." name] = COMPARE(type, !(a <= b));         \
  table["setp.geu." name] = COMPARE(type, !(a < b));
  table["setp.nan.f32"] = COMPARE(float, a != a || b != b);
  table["setp.num.f32"] = COMPARE(float, a == a && b == b);
  COMPARE_UNORDERED("f32", float)
  COMPARE_UNORDERED("f64", double)
}

// The results are as inexact as NVIDIA's manual allows, so a test that passes here holds on every
// GPU.
void add_approximations(Table& table) {
  // The result for 0 is exact.
  table["ex2.approx.f32"] =
      UNARY(float, float, a == 0 ? 1.0f : static_cast<float>(std::exp2(double{a}) * (1 + 0x1p-22)));
  table["lg2.approx.f32"] =
      UNARY(float, float,
            a > 0.5f && a < 2 ? static_cast<float>(std::log2(double{a}) + 0x1p-22)
                              : static_cast<float>(std::log2(double{a}) * (1 + 0x1p-22)));
  table["div.approx.f32"] =
      BINARY(float, std::fabs(b) > 0x1p126f ? (std::isinf(a) ? NAN : a * 0)
                                            : static_cast<float>(double{a} / b * (1 + 0x1p-22)));
}

Table make_table(PtxResults results) {
  Table table;
  add_moves(table);
  add_memory(table);
  add_integers(table);
  add_floats(table);
  add_conversions(table);
  add_comparisons(table);
  if (results == PtxResults::WithinBounds) add_approximations(table);
  return table;
}

}  // namespace

PtxInstruction::Run ptx_operation(const std::string& name, PtxResults results) {
  static const Table exact = make_table(PtxResults::Exact);
  static const Table all = make_table(PtxResults::WithinBounds);
  const Table& table = results == PtxResults::Exact ? exact : all;
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace convoy::testing
