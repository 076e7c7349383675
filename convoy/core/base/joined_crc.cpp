// SPDX-License-Identifier: Apache-2.0
//
// A CRC is linear over GF(2): behind n zero bytes it is a matrix to the power n, times itself
// (zlib's crc32_combine).
#include "convoy/core/base/joined_crc.h"

#include <array>
#include <cstddef>

namespace convoy {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, bits reversed

using Matrix = std::array<uint32_t, 32>;  // columns

uint32_t times(const Matrix& matrix, uint32_t vector) {
  uint32_t sum = 0;
  for (size_t bit = 0; vector != 0; ++bit, vector >>= 1)
    if ((vector & 1) != 0) sum ^= matrix[bit];
  return sum;
}

Matrix squared(const Matrix& matrix) {
  Matrix square;
  for (size_t column = 0; column < square.size(); ++column)
    square[column] = times(matrix, matrix[column]);
  return square;
}

// Maps a CRC to the CRC behind one more zero byte.
Matrix zero_byte() {
  Matrix matrix;  // a zero bit
  matrix[0] = kPolynomial;
  for (size_t column = 1; column < matrix.size(); ++column)
    matrix[column] = uint32_t{1} << (column - 1);
  for (int doubling = 0; doubling < 3; ++doubling) matrix = squared(matrix);
  return matrix;
}

}  // namespace

uint32_t joined_crc32c(uint32_t first, uint32_t second, uint64_t second_bytes) {
  for (Matrix shift = zero_byte(); second_bytes != 0; second_bytes >>= 1, shift = squared(shift))
    if ((second_bytes & 1) != 0) first = times(shift, first);
  return first ^ second;
}

}  // namespace convoy
