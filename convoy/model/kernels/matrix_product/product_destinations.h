// SPDX-License-Identifier: Apache-2.0
//
// Destinations for the sums of a product: all stored, perhaps rounded, or only the largest of each
// row.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "convoy/model/kernels/matrix_product/matrix_product.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {

// Where sums lie from the first row and column on.
struct SumsView {
  float* first = nullptr;
  int64_t stride = 0;
};

// The destination of a finished tile of sums.
class ProductDestination {
 public:
  virtual ~ProductDestination() = default;
  // The memory that receives the sums as they are: they are added up there, and take() is not
  // called. Null where there is none.
  virtual SumsView sums_in_place() const { return {}; }
  virtual void take(const float* sums, int64_t stride, int64_t row, int64_t column,
                    RowShape tile) = 0;
};

template <class Element>
class RoundedRows : public ProductDestination {
 public:
  RoundedRows(const at::Tensor& out_MN, const ProductOptions& options)
      : columns_(out_MN.size(1)),
        factor_(static_cast<float>(options.factor)),
        wide_(options.wide || std::is_same_v<Element, float>),
        out_(out_MN.mutable_data_ptr()) {}

  // Loops write whole panels.
  SumsView sums_in_place() const override {
    if (!wide_ || factor_ != 1.0f || columns_ % kPanelColumns != 0) return {};
    return {static_cast<float*>(out_), columns_};
  }

  void take(const float* sums, int64_t stride, int64_t row, int64_t column,
            RowShape tile) override {
    for (int64_t at = 0; at < tile.rows; ++at, sums += stride) {
      const int64_t to = (row + at) * columns_ + column;
      if (wide_)
        simd_kernels<float>().round_row(sums, static_cast<float*>(out_) + to, tile.width, factor_);
      else
        simd_kernels<Element>().round_row(sums, static_cast<Element*>(out_) + to, tile.width,
                                          factor_);
    }
  }

 private:
  int64_t columns_;
  float factor_;
  bool wide_;
  void* out_;
};

// Blocks of columns are merged at the end, in their order.
class LargestOfRows : public ProductDestination {
 public:
  // Blocks begin at multiples of `block_columns` and are once or twice as wide.
  LargestOfRows(int64_t rows, int64_t num_columns, int64_t block_columns)
      : rows_(rows),
        num_columns_(num_columns),
        block_columns_(block_columns),
        largest_(rows * ((num_columns + block_columns - 1) / block_columns),
                 {.value = -std::numeric_limits<float>::infinity()}) {}

  void take(const float* sums, int64_t stride, int64_t row, int64_t column,
            RowShape tile) override {
    const int64_t width = std::min(tile.width, num_columns_ - column);
    if (width <= 0) return;
    for (int64_t at = 0; at < tile.rows; ++at, sums += stride) {
      LargestLogit& largest = largest_[column / block_columns_ * rows_ + row + at];
      largest = simd_kernels<float>().largest_logit(sums, width);
      largest.index += column;
    }
  }

  at::Tensor columns() const {
    const at::Tensor columns_M = at::empty({rows_}, at::kLong);
    for (int64_t row = 0; row < rows_; ++row) {
      LargestLogit best = largest_[row];
      for (auto at = static_cast<size_t>(row); at < largest_.size(); at += rows_) {
        const bool all_numbers = best.all_numbers && largest_[at].all_numbers;
        if (largest_[at].value > best.value) best = largest_[at];
        best.all_numbers = all_numbers;
      }
      columns_M.mutable_data_ptr<int64_t>()[row] =
          best.all_numbers && std::isfinite(best.value) ? best.index : -1;
    }
    return columns_M;
  }

 private:
  int64_t rows_;
  int64_t num_columns_;
  int64_t block_columns_;
  std::vector<LargestLogit> largest_;  // by block of columns, then by row
};

}  // namespace convoy::kernels
