// SPDX-License-Identifier: Apache-2.0
//
// Tiles of rows by columns, one task each; the sums of a tile stay in cache until they are rounded.
#include "convoy/kernels/matrix_product/panel_product.h"

#include "convoy/kernels/simd/element.h"
#include "convoy/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kTileRows = 64;
constexpr int64_t kTileColumns = 128;
// Inner elements summed at a time, as bytes of a row: the panels of a tile stay in cache.
constexpr int64_t kInnerBytes = 2048;
// Columns that a task packs, or transposes, at a time.
constexpr int64_t kPackedColumns = 128;
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
    const int64_t first = block * kPackedColumns;
    body(first, std::min(kPackedColumns, columns - first));
  };
  const int64_t blocks = parts(columns, kPackedColumns);
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

template <class Element>
struct Term {
  const Element* a;
  int64_t stride;
  PackedView<Element> b;
  int64_t inner;
};

template <class Element>
class Product {
 public:
  Product(const std::vector<PanelTerm>& terms, const ProductOptions& options,
          const at::Tensor& out_MN)
      : rows_(out_MN.size(0)),
        columns_(out_MN.size(1)),
        factor_(static_cast<float>(options.factor)),
        wide_(options.wide),
        out_(out_MN.mutable_data_ptr()) {
    for (const PanelTerm& term : terms) {
      const at::Tensor& panels = term.b_KN.panels();
      const int64_t inner = term.b_KN.inner();
      inner_ += inner;
      terms_.push_back({term.a_MK.const_data_ptr<Element>(),
                        term.a_MK.stride(0),
                        {panels.const_data_ptr<Element>(), panel_elements<Element>(inner)},
                        inner});
    }
    if (!options.bias_N.defined()) return;
    const auto* bias = options.bias_N.const_data_ptr<Element>();
    bias_.assign(bias, bias + columns_);
  }

  void run() const {
    if (rows_ * columns_ * inner_ <= kSerialMultiplications) {
      std::vector<float> sums = scratch();
      for (int64_t tile = 0; tile < tiles(); ++tile) compute(tile, sums.data());
      return;
    }
    for_tasks(tiles(), [&]() -> TaskBody {
      auto sums = std::make_shared<std::vector<float>>(scratch());
      return [this, sums](int64_t tile) { compute(tile, sums->data()); };
    });
  }

 private:
  static constexpr int64_t kInner = kInnerBytes / static_cast<int64_t>(sizeof(Element));

  std::vector<float> scratch() const {
    return std::vector<float>(std::min(kTileRows, rows_) * kTileColumns);
  }
  int64_t tiles() const { return parts(rows_, kTileRows) * parts(columns_, kTileColumns); }

  // Tiles of the same columns follow one another: they read the same panels.
  void compute(int64_t tile, float* sums) const {
    const int64_t row_tiles = parts(rows_, kTileRows);
    const int64_t row = tile % row_tiles * kTileRows;
    const int64_t column = tile / row_tiles * kTileColumns;
    const int64_t height = std::min(kTileRows, rows_ - row);
    const int64_t width = std::min(kTileColumns, columns_ - column);
    for (int64_t at = 0; at < height && !bias_.empty(); ++at)
      std::copy_n(bias_.data() + column, width, sums + at * kTileColumns);
    bool adds = !bias_.empty();
    for (const Term<Element>& term : terms_) {
      for (int64_t k = 0; k == 0 || k < term.inner; k += kInner) {
        loops_.multiply(term.a + row * term.stride + k, term.stride, term.b.from(column, k), sums,
                        kTileColumns, {height, width, std::min(kInner, term.inner - k)}, adds);
        adds = true;
      }
    }
    for (int64_t at = 0; at < height; ++at)
      store(sums + at * kTileColumns, (row + at) * columns_ + column, width);
  }

  void store(const float* sums, int64_t to, int64_t width) const {
    if (wide_)
      float_loops_.round_row(sums, static_cast<float*>(out_) + to, width, factor_);
    else
      loops_.round_row(sums, static_cast<Element*>(out_) + to, width, factor_);
  }

  const SimdKernels<Element>& loops_ = simd_kernels<Element>();
  const SimdKernels<float>& float_loops_ = simd_kernels<float>();
  int64_t rows_;
  int64_t columns_;
  int64_t inner_ = 0;
  float factor_;
  bool wide_;
  std::vector<Term<Element>> terms_;
  std::vector<float> bias_;
  void* out_;
};

}  // namespace

PanelMatrix::PanelMatrix(const at::Tensor& b_KN) : inner_(b_KN.size(0)), columns_(b_KN.size(1)) {
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
  at::Tensor out_MN = at::empty({first.size(0), terms.front().b_KN.columns()},
                                options.wide ? first.options().dtype(at::kFloat) : first.options());
  if (out_MN.numel() == 0) return out_MN;
  with_element(first, "matrix_product",
               [&](auto element) { Product<decltype(element)>(terms, options, out_MN).run(); });
  return out_MN;
}

}  // namespace convoy::kernels
