// SPDX-License-Identifier: Apache-2.0
//
// Box-Muller over Lanes: a pair of 32-bit words becomes two normals r cos, r sin. Only operations
// that IEEE 754 rounds in one way (add, multiply, fma, root), so every CPU gives the same bits.
//
// Radius: f = float(int32(word | 1)), u = |f| / 2^31 = m 2^(e - 31), h = 2 - m, and
//   t = -2 ln u = h R(h) + (30 - e) c,   R(h) = -2 ln(1 - h / 2) / h,   c ~ 2 ln 2.
// c has 20 bits, so 30 c is a float and t = h R(h) at e = 30 exactly; at |f| = 2^31 (e = 31, h = 1)
// t = R(1) - c >= 0 by the choice of coefficients, so the root never sees a negative number.
// Angle: v = (22 bits of the word) / 2^23 in (-1/2, 1/2), cos(pi v) = C(v^2), sin(pi v) = v S(v^2);
// the sign of f turns the half plane into the plane.
// Coefficients: minimax in R (absolute error of t), C and S (absolute error of the sine).
//   Exact: 4e-7, 5e-8, 3e-9.   Fast: 2.2e-5, 7e-6, 7e-5.
// Largest |normal|: sqrt(62 ln 2) = 6.56.
// Needs Lanes of one lanes_*.inl.

inline constexpr float kOctave = 0x1.62e42p+0f;  // 726817 / 2^19

template <Precision>
struct NormalSeries;

template <>
struct NormalSeries<Precision::Exact> {
  static constexpr float kRadius[] = {1.0000304f,  0.24927148f,  0.08917454f, 0.009439691f,
                                      0.05468185f, -0.03680629f, 0.020502297f};
  static constexpr float kCosine[] = {0.99999994f, -4.934793f, 4.058412f, -1.3318802f, 0.2196968f};
  static constexpr float kSine[] = {3.1415925f, -5.167707f, 2.5500317f, -0.5980464f, 0.07722225f};
};

template <>
struct NormalSeries<Precision::Fast> {
  static constexpr float kRadius[] = {1.0008755f, 0.23883925f, 0.12848215f, -0.04443049f,
                                      0.06252799f};
  static constexpr float kCosine[] = {0.9999933f, -4.933938f, 4.0412836f, -1.2221271f};
  static constexpr float kSine[] = {3.1406434f, -5.136949f, 2.2996755f};
};

template <size_t kCount>
CONVOY_INLINE Lanes::Floats series(const float (&coefficients)[kCount], Lanes::Floats x) {
  Lanes::Floats sum = Lanes::all(coefficients[kCount - 1]);
#pragma GCC unroll 16
  for (size_t at = 2; at <= kCount; ++at)
    sum = Lanes::fma(sum, x, Lanes::all(coefficients[kCount - at]));
  return sum;
}

// The normals are radius * cosine and (radius * angle) * sine; kept as factors, for sums by fma.
struct NormalFactors {
  Lanes::Floats radius, cosine, turned, sine;
};

template <Precision kPrecision>
CONVOY_INLINE NormalFactors normal_factors(Lanes::Words even, Lanes::Words odd) {
  using Series = NormalSeries<kPrecision>;
  const Lanes::Floats f = Lanes::odd_to_float(even);
  const Lanes::Floats h = Lanes::subtract(Lanes::all(2.0f), Lanes::mantissa(f));
  const Lanes::Floats octaves =
      Lanes::fma(Lanes::exponent(f), Lanes::all(-kOctave), Lanes::all(30.0f * kOctave));
  const Lanes::Floats t = Lanes::fma(h, series(Series::kRadius, h), octaves);
  const Lanes::Floats radius = Lanes::flip_sign(Lanes::root(t), f);
  const Lanes::Floats v =
      Lanes::subtract(Lanes::masked_to_float(odd, 0x7FFFFEu, 0x3F800001u), Lanes::all(1.5f));
  const Lanes::Floats z = Lanes::multiply(v, v);
  return {radius, series(Series::kCosine, z), Lanes::multiply(radius, v), series(Series::kSine, z)};
}
