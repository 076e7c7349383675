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
  if constexpr (sizeof(T) == 4) return std::bit_cast<T>(static_cast<uint32_t>(bits));
  if constexpr (sizeof(T) == 8) return std::bit_cast<T>(bits);
}

template <class T>
uint64_t bits_of(T value) {
  if constexpr (sizeof(T) == 4) return std::bit_cast<uint32_t>(value);
  if constexpr (sizeof(T) == 8) return std::bit_cast<uint64_t>(value);
}

template <class T, class Function>
void binary(const PtxInstruction& i, Numbers n, Function function) {
  n[i.to[0]] = bits_of<T>(function(read<T>(n[i.from[0]]), read<T>(n[i.from[1]])));
}

#define BINARY(type, expression)                                           \
  [](const PtxInstruction& i, Numbers n, const PtxAllocations&) {          \
    binary<type>(i, n, [](type a, type b) -> type { return expression; }); \
  }
#define COMPARE(type, expression)                                          \
  [](const PtxInstruction& i, Numbers n, const PtxAllocations&) {          \
    const type a = read<type>(n[i.from[0]]), b = read<type>(n[i.from[1]]); \
    n[i.to[0]] = (expression) ? 1 : 0;                                     \
  }
#define UNARY(to_type, from_type, expression)                     \
  [](const PtxInstruction& i, Numbers n, const PtxAllocations&) { \
    const from_type a = read<from_type>(n[i.from[0]]);            \
    n[i.to[0]] = bits_of<to_type>(expression);                    \
  }

void move(const PtxInstruction& i, Numbers n, const PtxAllocations&) { n[i.to[0]] = n[i.from[0]]; }

// mov.b64 {low, high}, x.
void split(const PtxInstruction& i, Numbers n, const PtxAllocations&) {
  const uint64_t both = n[i.from[0]];
  n[i.to[0]] = both & 0xFFFFFFFFu;
  n[i.to[1]] = both >> 32;
}

void select(const PtxInstruction& i, Numbers n, const PtxAllocations&) {
  n[i.to[0]] = n[i.from[2]] != 0 ? n[i.from[0]] : n[i.from[1]];
}

template <class T>
void multiply_add(const PtxInstruction& i, Numbers n, const PtxAllocations&) {
  n[i.to[0]] =
      bits_of<T>(std::fma(read<T>(n[i.from[0]]), read<T>(n[i.from[1]]), read<T>(n[i.from[2]])));
}

void multiply_add_integer(const PtxInstruction& i, Numbers n, const PtxAllocations&) {
  n[i.to[0]] = static_cast<uint32_t>(n[i.from[0]] * n[i.from[1]] + n[i.from[2]]);
}

void extract_bits(const PtxInstruction& i, Numbers n, const PtxAllocations&) {
  const auto length = static_cast<uint32_t>(n[i.from[2]]);
  const uint32_t shifted = static_cast<uint32_t>(n[i.from[0]]) >> n[i.from[1]];
  n[i.to[0]] = length >= 32 ? shifted : shifted & ((1u << length) - 1);
}

uint8_t* checked(uint64_t address, uint64_t bytes, const PtxAllocations& allocations) {
  auto after = allocations.upper_bound(address);
  const bool inside = after != allocations.begin() &&
                      address + bytes <= std::prev(after)->first + std::prev(after)->second;
  if (!inside || address % bytes != 0)
    throw PtxError(fmt::format("{} bytes at {:#x} are not of any allocation", bytes, address));
  return reinterpret_cast<uint8_t*>(address);
}

template <class T, bool kChecked>
T* place_of(const PtxInstruction& i, Numbers n, uint32_t address, uint32_t at,
            const PtxAllocations& allocations) {
  const uint64_t place = n[address] + static_cast<uint64_t>(i.offset) + at * sizeof(T);
  if constexpr (kChecked) return reinterpret_cast<T*>(checked(place, sizeof(T), allocations));
  return reinterpret_cast<T*>(place);
}

template <class T, bool kChecked>
void load(const PtxInstruction& i, Numbers n, const PtxAllocations& allocations) {
  for (uint32_t at = 0; at < i.count; ++at) {
    T value;
    std::memcpy(&value, place_of<T, kChecked>(i, n, i.from[0], at, allocations), sizeof value);
    n[i.to[at]] = value;
  }
}

template <class T, bool kChecked>
void store(const PtxInstruction& i, Numbers n, const PtxAllocations& allocations) {
  for (uint32_t at = 0; at < i.count; ++at) {
    const T value = static_cast<T>(n[i.from[1 + at]]);
    std::memcpy(place_of<T, kChecked>(i, n, i.from[0], at, allocations), &value, sizeof value);
  }
}

template <class T>
void atomic_add(const PtxInstruction& i, Numbers n, const PtxAllocations& allocations) {
  T* const place = place_of<T, true>(i, n, i.from[0], 0, allocations);
  const T before = *place;
  *place = before + static_cast<T>(n[i.from[1]]);
  n[i.to[0]] = before;
}

double to_nearest(double value) { return std::nearbyint(value); }

using Table = std::map<std::string, PtxInstruction::Run>;

void add_moves(Table& table) {
  for (const char* type : {"u32", "b32", "s32", "f32", "u64", "b64", "s64", "f64", "pred"})
    table[fmt::format("mov.{}", type)] = move;
  for (const char* type : {"u32", "b32", "s32", "f32", "u64", "b64", "s64", "f64"})
    table[fmt::format("selp.{}", type)] = select;
  table["mov.split"] = split;
  for (const char* name : {"cvta.to.global.u64", "cvta.local.u64", "cvta.global.u64"})
    table[name] = move;
}

void add_memory(Table& table) {
  for (const char* type : {"u32", "b32", "s32", "f32"}) {
    table[fmt::format("ld.param.{}", type)] = load<uint32_t, false>;
    table[fmt::format("ld.global.{}", type)] = load<uint32_t, true>;
    table[fmt::format("st.global.{}", type)] = store<uint32_t, true>;
    table[fmt::format("ld.local.{}", type)] = table[fmt::format("ld.{}", type)] =
        load<uint32_t, false>;
    table[fmt::format("st.local.{}", type)] = table[fmt::format("st.{}", type)] =
        store<uint32_t, false>;
  }
  for (const char* type : {"u64", "b64", "s64", "f64"}) {
    table[fmt::format("ld.param.{}", type)] = load<uint64_t, false>;
    table[fmt::format("ld.global.{}", type)] = load<uint64_t, true>;
    table[fmt::format("st.global.{}", type)] = store<uint64_t, true>;
    table[fmt::format("ld.local.{}", type)] = table[fmt::format("ld.{}", type)] =
        load<uint64_t, false>;
    table[fmt::format("st.local.{}", type)] = table[fmt::format("st.{}", type)] =
        store<uint64_t, false>;
  }
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
  table["mul.wide.u32"] = [](const PtxInstruction& i, Numbers n, const PtxAllocations&) {
    n[i.to[0]] =
        uint64_t{static_cast<uint32_t>(n[i.from[0]])} * static_cast<uint32_t>(n[i.from[1]]);
  };
  table["min.u32"] = BINARY(uint32_t, a < b ? a : b);
  table["max.u32"] = BINARY(uint32_t, a > b ? a : b);
  table["min.s32"] = BINARY(int32_t, a < b ? a : b);
  table["max.s32"] = BINARY(int32_t, a > b ? a : b);
  for (const char* bits : {"b32", "b64", "pred"}) {
    table[fmt::format("and.{}", bits)] = BINARY(uint64_t, a & b);
    table[fmt::format("or.{}", bits)] = BINARY(uint64_t, a | b);
    table[fmt::format("xor.{}", bits)] = BINARY(uint64_t, a ^ b);
  }
  table["not.b32"] = UNARY(uint32_t, uint32_t, ~a);
  table["not.pred"] = UNARY(uint64_t, uint64_t, a ^ 1);
  table["shl.b32"] = BINARY(uint32_t, b < 32 ? a << b : 0);
  table["shl.b64"] = BINARY(uint64_t, b < 64 ? a << b : 0);
  table["shr.u32"] = BINARY(uint32_t, b < 32 ? a >> b : 0);
  table["shr.u64"] = BINARY(uint64_t, b < 64 ? a >> b : 0);
  table["bfe.u32"] = extract_bits;
}

// IEEE 754 has one answer to each of these.
void add_floats(Table& table) {
  table["add.rn.f32"] = BINARY(float, a + b);
  table["sub.rn.f32"] = BINARY(float, a - b);
  table["mul.rn.f32"] = BINARY(float, a* b);
  table["fma.rn.f32"] = multiply_add<float>;
  table["sqrt.rn.f32"] = UNARY(float, float, std::sqrt(a));
  table["add.rn.f64"] = BINARY(double, a + b);
  table["sub.rn.f64"] = BINARY(double, a - b);
  table["mul.rn.f64"] = BINARY(double, a* b);
  table["div.rn.f64"] = BINARY(double, a / b);
  table["fma.rn.f64"] = multiply_add<double>;
  table["neg.f32"] = UNARY(float, float, -a);
  table["neg.f64"] = UNARY(double, double, -a);
  table["abs.f32"] = UNARY(float, float, std::fabs(a));
  table["abs.f64"] = UNARY(double, double, std::fabs(a));
  table["min.f32"] = BINARY(float, std::fmin(a, b));
  table["max.f32"] = BINARY(float, std::fmax(a, b));
  table["min.f64"] = BINARY(double, std::fmin(a, b));
  table["max.f64"] = BINARY(double, std::fmax(a, b));
}

void add_conversions(Table& table) {
  table["cvt.u64.u32"] = UNARY(uint64_t, uint32_t, uint64_t{a});
  table["cvt.s64.s32"] = UNARY(int64_t, int32_t, int64_t{a});
  table["cvt.u32.u64"] = UNARY(uint32_t, uint64_t, static_cast<uint32_t>(a));
  table["cvt.rn.f32.s32"] = UNARY(float, int32_t, static_cast<float>(a));
  table["cvt.f64.f32"] = UNARY(double, float, double{a});
  table["cvt.rni.f64.f64"] = UNARY(double, double, to_nearest(a));
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
  COMPARE_ALL("u32", uint32_t)
  COMPARE_ALL("s32", int32_t)
  COMPARE_ALL("u64", uint64_t)
  COMPARE_ALL("s64", int64_t)
  COMPARE_ALL("f32", float)
  COMPARE_ALL("f64", double)
  for (const char* same : {"eq", "ne"})
    for (const char* bits : {"32", "64"})
      table[fmt::format("setp.{}.b{}", same, bits)] = table[fmt::format("setp.{}.u{}", same, bits)];
  // Of floats these are the ordered ones, but for ne; the others hold for NaN as well.
  table["setp.ne.f32"] = COMPARE(float, a<b || a> b);
  table["setp.ne.f64"] = COMPARE(double, a<b || a> b);
#define COMPARE_UNORDERED(name, type)                         \
  table["setp.equ." name] = COMPARE(type, !(a < b || a > b)); \
  table["setp.neu." name] = COMPARE(type, a != b);            \
  table["setp.ltu." name] = COMPARE(type, !(a >= b));         \
  table["setp.leu." name] = COMPARE(type, !(a > b));          \
  table["setp.gtu." name] = COMPARE(type, !(a <= b));         \
  table["setp.geu." name] = COMPARE(type, !(a < b));
  COMPARE_UNORDERED("f32", float)
  COMPARE_UNORDERED("f64", double)
}

Table make_table() {
  Table table;
  add_moves(table);
  add_memory(table);
  add_integers(table);
  add_floats(table);
  add_conversions(table);
  add_comparisons(table);
  return table;
}

}  // namespace

PtxInstruction::Run ptx_operation(const std::string& name) {
  static const Table table = make_table();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace convoy::testing
