// SPDX-License-Identifier: Apache-2.0
//
// A task has a group of rows and a block of columns. For each block of k it packs its part of B and
// multiplies tile by tile of rows; its sums stay in cache until they are rounded.
#include "convoy/kernels/matrix_product/panel_product.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "convoy/kernels/quantized_weight/quantized_panels.h"
#include "convoy/kernels/simd/element.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kTileRows = 64;
constexpr int64_t kMostRows = 512;
// Columns of a task; half of them where there are few tasks.
constexpr int64_t kBlockColumns = 128;
// Inner elements summed at a time, as bytes of a row: the panels of a block stay in cache.
constexpr int64_t kInnerBytes = 2048;
constexpr int64_t kTasksPerThread = 4;
// Rows are shared out in multiples of what the loop keeps in registers.
constexpr int64_t kRowsTogether = 8;
// Work of fewer multiplications, or elements to copy, is not worth a second thread.
constexpr int64_t kSerialMultiplications = 1 << 19;
constexpr int64_t kSerialElements = 1 << 14;

int64_t parts(int64_t total, int64_t of) { return (total + of - 1) / of; }

bool has_contiguous_rows(const at::Tensor& matrix) {
  return matrix.stride(1) == 1 || matrix.size(1) == 1 || matrix.numel() == 0;
}

// Calls body(first, width) for blocks of columns.
void for_column_blocks(int64_t columns, int64_t elements,
                       const std::function<void(int64_t, int64_t)>& body) {
  const auto run = [&](int64_t block) {
    const int64_t first = block * kBlockColumns;
    body(first, std::min(kBlockColumns, columns - first));
  };
  const int64_t blocks = parts(columns, kBlockColumns);
  if (elements > kSerialElements) return for_tasks(blocks, [&]() -> TaskBody { return run; });
  for (int64_t block = 0; block < blocks; ++block) run(block);
}

template <class Element>
at::Tensor pack(const at::Tensor& b_KN) {
  const GemmShape whole{.m = 0, .n = b_KN.size(1), .k = b_KN.size(0)};
  at::Tensor panels = at::empty({packed_elements<Element>(whole)}, b_KN.options());
  if (b_KN.numel() == 0) return panels.zero_();
  const auto& loops = simd_kernels<Element>();
  const auto* from = b_KN.const_data_ptr<Element>();
  auto* to = panels.mutable_data_ptr<Element>();
  const bool rows = has_contiguous_rows(b_KN);
  for_column_blocks(whole.n, b_KN.numel(), [&](int64_t first, int64_t width) {
    const GemmShape block{.m = 0, .n = width, .k = whole.k};
    Element* packed = to + first / kPanelColumns * panel_elements<Element>(whole.k);
    if (rows)
      loops.pack_rows(from + first, b_KN.stride(0), block, packed);
    else
      loops.pack_columns(from + first * b_KN.stride(1), b_KN.stride(1), block, packed);
  });
  return panels;
}

// How a product is cut into tasks. No bit of it depends on this.
struct Grid {
  int64_t rows;  // of a task
  int64_t columns;
  int64_t row_groups;
  int64_t column_blocks;

  int64_t tasks() const { return row_groups * column_blocks; }
};

Grid cut(int64_t rows, int64_t columns) {
  const int64_t wanted = kTasksPerThread * at::get_num_threads();
  Grid grid{};
  grid.row_groups = parts(rows, kMostRows);
  grid.columns =
      grid.row_groups * parts(columns, kBlockColumns) < wanted ? kBlockColumns / 2 : kBlockColumns;
  grid.column_blocks = parts(columns, grid.columns);
  grid.row_groups = std::clamp(parts(wanted, grid.column_blocks), grid.row_groups,
                               std::max(grid.row_groups, parts(rows, kTileRows)));
  grid.rows = round_up(parts(rows, grid.row_groups), kRowsTogether);
  grid.row_groups = parts(rows, grid.rows);
  return grid;
}

int64_t inner_of(const PanelTerm& term) {
  return term.quantized != nullptr ? term.quantized->inner() : term.b_KN.size(0);
}
int64_t columns_of(const PanelTerm& term) {
  return term.quantized != nullptr ? term.quantized->columns() : term.b_KN.size(1);
}

template <class Element>
class Term {
 public:
  explicit Term(const PanelTerm& term)
      : a_(term.a_MK.const_data_ptr<Element>()),
        stride_a_(term.a_MK.stride(0)),
        inner_(inner_of(term)),
        quantized_(term.quantized) {
    if (term.quantized != nullptr) return;
    b_ = term.b_KN.const_data_ptr<Element>();
    b_in_rows_ = has_contiguous_rows(term.b_KN);
    stride_b_ = term.b_KN.stride(b_in_rows_ ? 0 : 1);
    if (term.packed != nullptr) packed_ = term.packed->panels().const_data_ptr<Element>();
  }

  int64_t inner() const { return inner_; }
  const Element* a(int64_t row, int64_t k) const { return a_ + row * stride_a_ + k; }
  int64_t stride_a() const { return stride_a_; }

  // What panels() is asked for at a time.
  int64_t block_inner() const {
    return quantized_ != nullptr ? QuantizedPanels::kUnpackedInner
                                 : kInnerBytes / static_cast<int64_t>(sizeof(Element));
  }
  int64_t block_columns(int64_t width) const {
    return quantized_ != nullptr ? std::min(width, kPanelColumns) : width;
  }

  // B from (k, column) on, packed into `scratch` unless it is packed already.
  PackedView<Element> panels(int64_t column, int64_t k, const GemmShape& block,
                             Element* scratch) const {
    if (packed_ != nullptr)
      return PackedView<Element>{packed_, panel_elements<Element>(inner_)}.from(column, k);
    const auto& loops = simd_kernels<Element>();
    if (quantized_ != nullptr)
      quantized_->unpack(column, k, block, scratch);
    else if (b_in_rows_)
      loops.pack_rows(b_ + k * stride_b_ + column, stride_b_, block, scratch);
    else
      loops.pack_columns(b_ + column * stride_b_ + k, stride_b_, block, scratch);
    return {scratch, panel_elements<Element>(block.k)};
  }

 private:
  const Element* a_;
  int64_t stride_a_;
  int64_t inner_;
  const Element* b_ = nullptr;
  bool b_in_rows_ = false;
  int64_t stride_b_ = 0;
  const Element* packed_ = nullptr;
  const QuantizedPanels* quantized_;
};

// The largest element of a row in one block of columns.
struct RowLargest {
  float value = -std::numeric_limits<float>::infinity();
  int64_t column = -1;
  bool is_number = true;
};

// Where a finished tile of sums goes.
template <class Element>
class Destination {
 public:
  virtual ~Destination() = default;
  virtual void take(const float* sums, int64_t stride, int64_t row, int64_t column,
                    RowShape tile) = 0;
};

template <class Element>
class RoundedRows : public Destination<Element> {
 public:
  RoundedRows(const at::Tensor& out_MN, const ProductOptions& options)
      : columns_(out_MN.size(1)),
        factor_(static_cast<float>(options.factor)),
        wide_(options.wide),
        out_(out_MN.mutable_data_ptr()) {}

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

// Blocks of columns meet in the end, in their order.
template <class Element>
class LargestOfRows : public Destination<Element> {
 public:
  LargestOfRows(int64_t rows, int64_t num_columns)
      : rows_(rows),
        num_columns_(num_columns),
        largest_(rows * parts(num_columns, kBlockColumns / 2)) {}

  void take(const float* sums, int64_t stride, int64_t row, int64_t column,
            RowShape tile) override {
    const int64_t width = std::min(tile.width, num_columns_ - column);
    std::array<Element, kBlockColumns> rounded;
    const auto& loops = simd_kernels<Element>();
    for (int64_t at = 0; at < tile.rows && width > 0; ++at, sums += stride) {
      loops.round_row(sums, rounded.data(), width, 1.0f);
      const LogitRange range = loops.logit_range(rounded.data(), width);
      const auto found = std::find_if(rounded.begin(), rounded.begin() + width, [&](Element each) {
        return static_cast<float>(each) == range.highest;
      });
      largest_[column / (kBlockColumns / 2) * rows_ + row + at] = {
          range.highest, column + (found - rounded.begin()), range.all_numbers};
    }
  }

  at::Tensor columns() const {
    const at::Tensor columns_M = at::empty({rows_}, at::kLong);
    for (int64_t row = 0; row < rows_; ++row) {
      RowLargest best;
      bool are_numbers = true;
      for (auto at = static_cast<size_t>(row); at < largest_.size(); at += rows_) {
        are_numbers = are_numbers && largest_[at].is_number;
        if (largest_[at].value > best.value) best = largest_[at];
      }
      columns_M.mutable_data_ptr<int64_t>()[row] =
          are_numbers && std::isfinite(best.value) ? best.column : -1;
    }
    return columns_M;
  }

 private:
  int64_t rows_;
  int64_t num_columns_;
  std::vector<RowLargest> largest_;  // by the smallest block of columns, then by row
};

template <class Element>
class Product {
 public:
  Product(const std::vector<PanelTerm>& terms, const at::Tensor& bias_N)
      : rows_(terms.front().a_MK.size(0)),
        columns_(columns_of(terms.front())),
        grid_(cut(rows_, columns_)) {
    for (const PanelTerm& term : terms) {
      terms_.emplace_back(term);
      inner_ += terms_.back().inner();
      deepest_ = std::max(deepest_, std::min(terms_.back().block_inner(), terms_.back().inner()));
    }
    if (!bias_N.defined()) return;
    const auto* bias = bias_N.const_data_ptr<Element>();
    bias_.assign(bias, bias + columns_);
  }

  void run(Destination<Element>& destination) const {
    if (rows_ * columns_ * inner_ <= kSerialMultiplications) {
      const Scratch scratch = make_scratch();
      for (int64_t task = 0; task < grid_.tasks(); ++task) compute(task, scratch, destination);
      return;
    }
    for_tasks(grid_.tasks(), [&]() -> TaskBody {
      return [&, scratch = make_scratch()](int64_t task) { compute(task, scratch, destination); };
    });
  }

 private:
  struct Scratch {
    at::Tensor panels;
    at::Tensor sums;
  };
  Scratch make_scratch() const {
    const int64_t elements = packed_elements<Element>({.m = 0, .n = grid_.columns, .k = deepest_});
    return {at::empty({elements}, c10::CppTypeToScalarType<Element>::value),
            at::empty({grid_.rows * grid_.columns}, at::kFloat)};
  }

  void compute(int64_t task, const Scratch& scratch, Destination<Element>& destination) const {
    const int64_t row = task / grid_.column_blocks * grid_.rows;
    const int64_t column = task % grid_.column_blocks * grid_.columns;
    const int64_t height = std::min(grid_.rows, rows_ - row);
    const int64_t width = std::min(grid_.columns, columns_ - column);
    auto* sums = scratch.sums.template mutable_data_ptr<float>();
    auto* panels = scratch.panels.template mutable_data_ptr<Element>();
    bool adds = !bias_.empty();
    for (int64_t at = 0; at < height && adds; ++at)
      std::copy_n(bias_.data() + column, width, sums + at * grid_.columns);
    for (const Term<Element>& term : terms_) {
      const int64_t depth = term.block_inner();
      for (int64_t k = 0; k == 0 || k < term.inner(); k += depth) {
        const int64_t strip = term.block_columns(width);
        for (int64_t first = 0; first < width; first += strip) {
          const GemmShape block{height, std::min(strip, width - first),
                                std::min(depth, term.inner() - k)};
          const bool is_last =
              &term == &terms_.back() && k + depth >= term.inner() && first + strip >= width;
          const PackedView<Element> packed = term.panels(column + first, k, block, panels);
          for (int64_t tile = 0; tile < height; tile += kTileRows) {
            const int64_t rows = std::min(kTileRows, height - tile);
            float* tile_sums = sums + tile * grid_.columns;
            loops_.multiply(term.a(row + tile, k), term.stride_a(), packed, tile_sums + first,
                            grid_.columns, {rows, block.n, block.k}, adds);
            if (is_last)
              destination.take(tile_sums, grid_.columns, row + tile, column, {rows, width});
          }
        }
        adds = true;
      }
    }
  }

  const SimdKernels<Element>& loops_ = simd_kernels<Element>();
  int64_t rows_;
  int64_t columns_;
  Grid grid_;
  int64_t inner_ = 0;
  int64_t deepest_ = 0;
  std::vector<Term<Element>> terms_;
  std::vector<float> bias_;
};

}  // namespace

PanelMatrix::PanelMatrix(const at::Tensor& b_KN) {
  with_element(b_KN, "matrix_product",
               [&](auto element) { panels_ = pack<decltype(element)>(b_KN); });
}

at::Tensor in_rows(const at::Tensor& matrix) {
  if (has_contiguous_rows(matrix)) return matrix;
  const int64_t rows = matrix.size(0);
  const int64_t columns = matrix.size(1);
  at::Tensor copy = at::empty({rows, columns}, matrix.options());
  with_element(matrix, "matrix_product", [&](auto element) {
    using Element = decltype(element);
    const auto* from = matrix.const_data_ptr<Element>();
    auto* to = copy.mutable_data_ptr<Element>();
    for_column_blocks(columns, matrix.numel(), [&](int64_t first, int64_t width) {
      simd_kernels<Element>().transpose(from + first * matrix.stride(1), matrix.stride(1),
                                        {width, rows}, to + first, columns);
    });
  });
  return copy;
}

at::Tensor panel_product(const std::vector<PanelTerm>& terms, const ProductOptions& options) {
  const at::Tensor& first = terms.front().a_MK;
  at::Tensor out_MN = at::empty({first.size(0), columns_of(terms.front())},
                                options.wide ? first.options().dtype(at::kFloat) : first.options());
  if (out_MN.numel() == 0) return out_MN;
  with_element(first, "matrix_product", [&](auto element) {
    using Element = decltype(element);
    RoundedRows<Element> rounded(out_MN, options);
    Product<Element>(terms, options.bias_N).run(rounded);
  });
  return out_MN;
}

at::Tensor panel_argmax(const std::vector<PanelTerm>& terms, const at::Tensor& bias_N,
                        int64_t num_columns) {
  const at::Tensor& first = terms.front().a_MK;
  at::Tensor columns_M = at::empty({first.size(0)}, at::kLong);
  if (columns_M.numel() == 0) return columns_M;
  with_element(first, "matrix_product", [&](auto element) {
    using Element = decltype(element);
    LargestOfRows<Element> largest(first.size(0), num_columns);
    Product<Element>(terms, bias_N).run(largest);
    columns_M = largest.columns();
  });
  return columns_M;
}

}  // namespace convoy::kernels
