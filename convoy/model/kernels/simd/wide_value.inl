// SPDX-License-Identifier: Apache-2.0
//
// Values wider than a register, as registers side by side. The compiler keeps its own vectors of
// that width in memory, and compares, selects and converts them lane by lane. See vector16.inl.

template <class Scalar>
struct RegisterOf;
template <>
struct RegisterOf<float> {
  using Lanes = RegisterFloats;
};
template <>
struct RegisterOf<int32_t> {
  using Lanes = RegisterInts;
};
template <>
struct RegisterOf<uint32_t> {
  using Lanes = RegisterWords;
};
template <>
struct RegisterOf<double> {
  using Lanes = double __attribute__((vector_size(4 * kRegisterLanes)));
};
template <class Scalar, int64_t lanes>
struct WideValue;
template <class Scalar, int64_t lanes>
using LanesOf = std::conditional_t<sizeof(Scalar) * lanes == 4 * kRegisterLanes,
                                   typename RegisterOf<Scalar>::Lanes, WideValue<Scalar, lanes>>;

template <class Scalar, int64_t lanes>
struct WideValue {
  using Half = LanesOf<Scalar, lanes / 2>;
  Half low{};
  Half high{};

  Scalar operator[](int64_t lane) const {
    Scalar all[lanes];
    __builtin_memcpy(all, this, sizeof all);
    return all[lane];
  }
};

#define CONVOY_WIDE template <class Scalar, int64_t lanes>
#define CONVOY_WIDE_OPERATOR(sign)                                                                 \
  CONVOY_WIDE CONVOY_INLINE WideValue<Scalar, lanes> operator sign(                                \
      const WideValue<Scalar, lanes>& a, const WideValue<Scalar, lanes>& b) {                      \
    return {a.low sign b.low, a.high sign b.high};                                                 \
  }                                                                                                \
  CONVOY_WIDE CONVOY_INLINE WideValue<Scalar, lanes> operator sign(                                \
      const WideValue<Scalar, lanes>& a, std::type_identity_t<Scalar> b) {                         \
    return {a.low sign b, a.high sign b};                                                          \
  }                                                                                                \
  CONVOY_WIDE CONVOY_INLINE WideValue<Scalar, lanes> operator sign(                                \
      std::type_identity_t<Scalar> a, const WideValue<Scalar, lanes>& b) {                         \
    return {a sign b.low, a sign b.high};                                                          \
  }                                                                                                \
  template <class Scalar, int64_t lanes, class Other>                                              \
  CONVOY_INLINE WideValue<Scalar, lanes>& operator sign##=(WideValue<Scalar, lanes>& a,            \
                                                           const Other& b) {                       \
    return a = a sign b;                                                                           \
  }
CONVOY_WIDE_OPERATOR(+)
CONVOY_WIDE_OPERATOR(-)
CONVOY_WIDE_OPERATOR(*)
CONVOY_WIDE_OPERATOR(/)
CONVOY_WIDE_OPERATOR(&)
CONVOY_WIDE_OPERATOR(|)
CONVOY_WIDE_OPERATOR(>>)
#undef CONVOY_WIDE_OPERATOR
CONVOY_WIDE CONVOY_INLINE WideValue<Scalar, lanes> operator-(const WideValue<Scalar, lanes>& a) {
  return {-a.low, -a.high};
}
CONVOY_WIDE CONVOY_INLINE WideValue<Scalar, lanes> operator~(const WideValue<Scalar, lanes>& a) {
  return {~a.low, ~a.high};
}
#undef CONVOY_WIDE
