// SPDX-License-Identifier: Apache-2.0
//
// Box-Muller over Lanes: random words become pairs of normals r cos, r sin. Only operations that
// IEEE 754 rounds in one way (add, multiply, fma, root), so every CPU gives the same bits.
//
// Forms: Exact and Fast make a pair from two words, one for the radius, one for the angle. Packed
// makes a pair from one word, so a block of four words gives eight normals: bits 31 to 10 are the
// radius, 11 to 1 the angle. The two bits in common are the highest of the angle and the lowest of
// the radius, where they change u by 2^-20. That matters only if u itself is that small, once in a
// million pairs.
//
// Radius: f = float(int32) of its bits, made odd so that it is never 0, u = |f| / 2^31 = m 2^(e - 31),
//   h = 2 - m,  t = -2 ln u = h R(h) + (30 - e) c,  R(h) = -2 ln(1 - h / 2) / h,  c ~ 2 ln 2.
// c has 20 bits, so 30 c is a float and t = h R(h) at e = 30 exactly; at |f| = 2^31 (e = 31, h = 1)
// t = R(1) - c >= 0 by the choice of coefficients, so the root never sees a negative number.
// Angle: v = odd / 2^23 (Packed: odd / 2^12) in (-1/2, 1/2), cos(pi/2 v) = C(v^2) and sin(pi/2 v) =
// v S(v^2): a quarter of the plane. The sign of f adds the opposite quarter. One more bit decides
// whether the two normals are exchanged, which adds the other two quarters. A sum over both normals
// of a pair does not change by the exchange, so PairFactors are not exchanged and are not
// independent normals. Their plain sum is r P(v), P(v) = cosine + sine.
// Coefficients: minimax in R (error of r), C, S and P; but in Fast and Packed, C and P have a mean
// square of 1.   Exact: 2.5e-6, 3e-8, 6e-7, 6e-7.   Fast, Packed: 1.8e-5, 1.5e-5, 1.5e-4, 1.5e-4.
// Largest |normal|: sqrt(62 ln 2) = 6.56; Packed: sqrt(44 ln 2) = 5.52.
// Needs Lanes of one lanes_*.inl.

inline constexpr float kOctave = 0x1.62e42p+0f;  // 726817 / 2^19

struct ExactForm {
  static constexpr uint32_t kRadiusMask = ~0u, kRadiusBit = 1;
  static constexpr uint32_t kAngleMask = 0x7FFFFEu;
  // The angle is a float around kAngleCentre; minus kAngleCentre it is v * kAngleUnit.
  static constexpr float kAngleCentre = 1.5f, kAngleUnit = 1;
  static constexpr float kRadius[] = {0.99994045f, 0.25154385f,   0.07213832f,
                                      0.06504797f, -0.034320187f, 0.031943955f};
  static constexpr float kCosine[] = {1.0f, -1.233697f, 0.25359863f, -0.020408353f};
  static constexpr float kSine[] = {1.5707885f, -0.6457124f, 0.07766845f};
  static constexpr float kSum[] = {0.99999994f, 1.5707885f,   -1.233695f,   -0.6457122f,
                                   0.2535776f,  0.077668078f, -0.020352157f};
};

struct FastForm {
  static constexpr uint32_t kRadiusMask = ~0u, kRadiusBit = 1;
  static constexpr uint32_t kAngleMask = 0x7FFFFEu;
  static constexpr float kAngleCentre = 1.5f, kAngleUnit = 1;
  static constexpr float kRadius[] = {1.0003505f, 0.2436607f, 0.114596725f, -0.028581787f,
                                      0.05626822f};
  static constexpr float kCosine[] = {0.99998485f, -1.2329804f, 0.24594904f};
  static constexpr float kSine[] = {1.5692776f, -0.62147236f};
  static constexpr float kSum[] = {0.99997522f, 1.5692708f, -1.2326589f, -0.6214763f, 0.2446835f};
};

struct PackedForm : FastForm {
  static constexpr uint32_t kRadiusMask = 0xFFFFFC00u, kRadiusBit = 0x200;
  static constexpr uint32_t kAngleMask = 0xFFEu;
  // The angle's bits are used at their place in the word, without a shift.
  static constexpr float kAngleCentre = 1.0f + 0x1p-12f, kAngleUnit = 0x1p-11f;
};

// The series first * sum of coefficients[k] * (step * x)^k. It is exact if `first` and `step` are
// powers of 2.
template <size_t kCount>
struct Series {
  float of[kCount];

  constexpr Series(const float (&coefficients)[kCount], float first, float step) : of() {
    for (size_t at = 0; at < kCount; ++at) {
      of[at] = coefficients[at] * first;
      first *= step;
    }
  }

  CONVOY_INLINE Lanes::Floats at(Lanes::Floats x) const {
    Lanes::Floats sum = Lanes::all(of[kCount - 1]);
#pragma GCC unroll 16
    for (size_t term = 2; term <= kCount; ++term)
      sum = Lanes::fma(sum, x, Lanes::all(of[kCount - term]));
    return sum;
  }
};

// The radius with its sign, and v * kAngleUnit.
struct Polar {
  Lanes::Floats radius, angle;
};

template <class Form>
CONVOY_INLINE Polar polar(Lanes::Words radius_word, Lanes::Words angle_word) {
  constexpr Series kSeries(Form::kRadius, 1, 1);
  const Lanes::Floats f = Lanes::masked_to_number(radius_word, Form::kRadiusMask, Form::kRadiusBit);
  const Lanes::Floats h = Lanes::subtract(Lanes::all(2.0f), Lanes::mantissa(f));
  const Lanes::Floats octaves =
      Lanes::fma(Lanes::exponent(f), Lanes::all(-kOctave), Lanes::all(30.0f * kOctave));
  const Lanes::Floats t = Lanes::fma(h, kSeries.at(h), octaves);
  return {Lanes::flip_sign(Lanes::root(t), f),
          Lanes::subtract(Lanes::masked_to_float(angle_word, Form::kAngleMask, 0x3F800001u),
                          Lanes::all(Form::kAngleCentre))};
}

// The two numbers of a pair as factors, for sums by fma: radius * cosine is the number of larger
// magnitude, turned * sine the other.
struct PairFactors {
  Lanes::Floats radius, cosine, turned, sine;
};

template <class Form>
CONVOY_INLINE PairFactors pair_factors(Lanes::Words radius_word, Lanes::Words angle_word) {
  constexpr float kPerUnit = 1 / Form::kAngleUnit;
  constexpr Series kCosine(Form::kCosine, 1, kPerUnit * kPerUnit);
  constexpr Series kSine(Form::kSine, kPerUnit, kPerUnit * kPerUnit);
  const Polar place = polar<Form>(radius_word, angle_word);
  const Lanes::Floats z = Lanes::multiply(place.angle, place.angle);
  return {place.radius, kCosine.at(z), Lanes::multiply(place.radius, place.angle), kSine.at(z)};
}

// The sum of a pair is radius * turn.
struct SumFactors {
  Lanes::Floats radius, turn;
};

template <class Form>
CONVOY_INLINE SumFactors sum_factors(Lanes::Words radius_word, Lanes::Words angle_word) {
  constexpr Series kSum(Form::kSum, 1, 1 / Form::kAngleUnit);
  const Polar place = polar<Form>(radius_word, angle_word);
  return {place.radius, kSum.at(place.angle)};
}

struct NormalPair {
  Lanes::Floats first, second;
};

// A pair of independent normals. The highest bit of `exchange` decides which of them comes first.
template <class Form>
CONVOY_INLINE NormalPair exchanged_pair(Lanes::Words radius_word, Lanes::Words angle_word,
                                        Lanes::Words exchange) {
  const PairFactors factors = pair_factors<Form>(radius_word, angle_word);
  const Lanes::Floats larger = Lanes::multiply(factors.radius, factors.cosine);
  const Lanes::Floats smaller = Lanes::multiply(factors.turned, factors.sine);
  return {Lanes::choose(exchange, smaller, larger), Lanes::choose(exchange, larger, smaller)};
}

// The normals of a block's words (philox_lanes.inl): slots 0 and 1, then slots 2 and 3. The upper
// halves hold the first slot of each pair.
template <Precision kPrecision>
CONVOY_INLINE NormalPair normal_pair(Lanes::Words even, Lanes::Words odd) {
  if constexpr (kPrecision == Precision::Exact)
    return exchanged_pair<ExactForm>(even, odd, odd);
  else
    return exchanged_pair<FastForm>(even, odd, odd);
}

// The normals of half of a block's words: four of the block's eight slots.
CONVOY_INLINE NormalPair packed_normal_pair(Lanes::Words words) {
  return exchanged_pair<PackedForm>(words, words, Lanes::lowest_to_top(words));
}
