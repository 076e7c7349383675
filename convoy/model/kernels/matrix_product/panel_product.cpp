// SPDX-License-Identifier: Apache-2.0
//
// A task has a group of rows and a block of columns. For each block of k it packs its part of B and
// multiplies tile by tile of rows; its sums stay in cache until they are rounded. Sums that are not
// rounded are added up where the result lies.
#include "convoy/model/kernels/matrix_product/panel_product.h"

#include <algorithm>
#include <memory>

#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_reader.h"
#include "convoy/model/kernels/integer_weight/integer_panels.h"
#include "convoy/model/kernels/matrix_product/product_destinations.h"
#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/panel_memory.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

constexpr int64_t kPanelTileRows = 64;
constexpr int64_t kMostRows = 512;
// Sums in place need no scratch memory for each row, so a block of columns is packed once for many
// rows.
constexpr int64_t kMostRowsInPlace = 4096;
// Columns of a task; half as many if there are few tasks.
constexpr int64_t kBlockColumns = 128;
// Inner elements summed at a time, as bytes of a row: the panels of a block stay in cache.
constexpr int64_t kInnerBytes = 2048;
// Columns of a coded weight that are decoded before they are packed: they stay in cache in between.
constexpr int64_t kDecodedColumns = 64;
constexpr int64_t kTasksPerThread = 4;
// Rows are shared out in multiples of what the loop keeps in registers.
constexpr int64_t kRowsTogether = 8;

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
  for_tasks(parts(columns, kBlockColumns), kWorkOfElement * elements,
            [&]() -> TaskBody { return run; });
}

template <class Element>
at::Tensor pack(const at::Tensor& b_KN) {
  const GemmShape whole{.m = 0, .n = b_KN.size(1), .k = b_KN.size(0)};
  at::Tensor panels = empty_panels({packed_elements<Element>(whole)}, b_KN.scalar_type());
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

// The division of a product into tasks. No bit of the result depends on it.
struct Grid {
  int64_t rows;  // in a task
  int64_t columns;
  int64_t row_groups;
  int64_t column_blocks;

  int64_t tasks() const { return row_groups * column_blocks; }
};

Grid cut(int64_t rows, int64_t columns, int64_t most_rows) {
  const int64_t wanted = kTasksPerThread * at::get_num_threads();
  Grid grid{};
  grid.row_groups = parts(rows, most_rows);
  grid.columns =
      grid.row_groups * parts(columns, kBlockColumns) < wanted ? kBlockColumns / 2 : kBlockColumns;
  grid.column_blocks = parts(columns, grid.columns);
  grid.row_groups = std::clamp(parts(wanted, grid.column_blocks), grid.row_groups,
                               std::max(grid.row_groups, parts(rows, kPanelTileRows)));
  grid.rows = round_up(parts(rows, grid.row_groups), kRowsTogether);
  grid.row_groups = parts(rows, grid.rows);
  return grid;
}

int64_t columns_of(const PanelTerm& term) {
  if (term.coded.weight != nullptr) return term.coded.weight->shape[term.coded.transposed ? 0 : 1];
  return term.quantized != nullptr ? term.quantized->columns() : term.b_KN.size(1);
}

template <class Element>
class Term {
 public:
  explicit Term(const PanelTerm& term)
      : a_(term.a_MK.const_data_ptr<Element>()),
        stride_a_(term.a_MK.stride(0)),
        inner_(term.a_MK.size(1)),
        quantized_(term.quantized) {
    if (quantized_ != nullptr) {
      group_sums_MG_ = quantized_->group_sums(term.a_MK);
      if (group_sums_MG_.defined()) group_sums_ = group_sums_MG_.const_data_ptr<float>();
      rounded_rows_ = quantized_->rounded_rows(term.a_MK);
      if (rounded_rows_.defined())
        rounded_ = reinterpret_cast<const RoundedBlock*>(rounded_rows_.const_data_ptr<uint8_t>());
      return;
    }
    if (term.coded.weight != nullptr) {
      coded_.emplace(*term.coded.weight);
      coded_transposed_ = term.coded.transposed;
      return;
    }
    b_ = term.b_KN.const_data_ptr<Element>();
    b_in_rows_ = has_contiguous_rows(term.b_KN);
    stride_b_ = term.b_KN.stride(b_in_rows_ ? 0 : 1);
    if (term.packed != nullptr) packed_ = term.packed->panels().const_data_ptr<Element>();
  }

  int64_t inner() const { return inner_; }
  const Element* a(int64_t row, int64_t k) const { return a_ + row * stride_a_ + k; }
  int64_t stride_a() const { return stride_a_; }
  const IntegerPanels* quantized() const { return quantized_; }
  bool is_bitsandbytes() const { return coded_.has_value(); }

  // The rows of a quantised term.
  IntegerPanels::Rows<Element> rows(int64_t row, int64_t count) const {
    const float* sums =
        group_sums_ == nullptr ? nullptr : group_sums_ + row * group_sums_MG_.size(1);
    const RoundedBlock* rounded =
        rounded_ == nullptr ? nullptr : rounded_ + row * quantized_->blocks_per_row();
    return {a(row, 0), stride_a_, sums, rounded, count};
  }

  // The panels of another term: B from (k, column) on, packed into `scratch` unless it is packed
  // already. `decoded`: memory for kDecodedColumns of a coded term.
  PackedView<Element> panels(int64_t column, int64_t k, const GemmShape& block, Element* scratch,
                             Element* decoded) const {
    if (packed_ != nullptr)
      return PackedView<Element>{packed_, panel_elements<Element>(inner_)}.from(column, k);
    const auto& loops = simd_kernels<Element>();
    if (is_bitsandbytes())
      pack_bitsandbytes(column, k, block, scratch, decoded);
    else if (b_in_rows_)
      loops.pack_rows(b_ + k * stride_b_ + column, stride_b_, block, scratch);
    else
      loops.pack_columns(b_ + column * stride_b_ + k, stride_b_, block, scratch);
    return {scratch, panel_elements<Element>(block.k)};
  }

 private:
  void pack_bitsandbytes(int64_t column, int64_t k, const GemmShape& block, Element* packed,
                         Element* decoded) const {
    const auto& loops = simd_kernels<Element>();
    for (int64_t first = 0; first < block.n; first += kDecodedColumns) {
      const GemmShape part{.m = 0, .n = std::min(kDecodedColumns, block.n - first), .k = block.k};
      Element* to = packed + first / kPanelColumns * panel_elements<Element>(block.k);
      if (coded_transposed_) {
        coded_->read({column + first, k, part.n, part.k}, decoded, part.k);
        loops.pack_columns(decoded, part.k, part, to);
      } else {
        coded_->read({k, column + first, part.k, part.n}, decoded, part.n);
        loops.pack_rows(decoded, part.n, part, to);
      }
    }
  }

  const Element* a_;
  int64_t stride_a_;
  int64_t inner_;
  const Element* b_ = nullptr;
  bool b_in_rows_ = false;
  int64_t stride_b_ = 0;
  const Element* packed_ = nullptr;
  const IntegerPanels* quantized_;
  at::Tensor group_sums_MG_;
  const float* group_sums_ = nullptr;
  at::Tensor rounded_rows_;
  const RoundedBlock* rounded_ = nullptr;
  std::optional<BitsandbytesReader<Element>> coded_;
  bool coded_transposed_ = false;
};

// Products of integers keep their own sums beside the result, with the result's stride.
bool multiplies_integers(const std::vector<PanelTerm>& terms) {
  return std::any_of(terms.begin(), terms.end(),
                     [](const PanelTerm& term) { return term.quantized != nullptr; });
}

template <class Element>
class Product {
 public:
  Product(const std::vector<PanelTerm>& terms, const at::Tensor& bias_N,
          ProductDestination& destination)
      : destination_(destination),
        result_(multiplies_integers(terms) ? SumsView{} : destination.sums_in_place()),
        rows_(terms.front().a_MK.size(0)),
        columns_(columns_of(terms.front())),
        grid_(cut(rows_, columns_, in_place() ? kMostRowsInPlace : kMostRows)) {
    for (const PanelTerm& term : terms) {
      terms_.emplace_back(term);
      inner_ += terms_.back().inner();
      deepest_ = std::max(deepest_, std::min(kInner, terms_.back().inner()));
    }
    if (!bias_N.defined()) return;
    const auto* bias = bias_N.const_data_ptr<Element>();
    bias_.assign(bias, bias + columns_);
  }

  void run() const {
    const int64_t work = std::max(rows_, kRowsOfReading) * columns_ * inner_;
    for_neighbouring_tasks(grid_.tasks(), work, [&]() -> TaskBody {
      auto scratch = std::make_shared<Scratch>(make_scratch());
      return [&, scratch](int64_t task) { compute(task, *scratch); };
    });
  }

 private:
  static constexpr int64_t kInner = kInnerBytes / static_cast<int64_t>(sizeof(Element));

  struct Scratch {
    std::unique_ptr<Element[]> panels;
    std::unique_ptr<float[]> sums;  // null where they are added up in place
    std::unique_ptr<Element[]> decoded;
    IntegerPanels::Scratch quantized;
  };
  Scratch make_scratch() const {
    const int64_t elements = packed_elements<Element>({.m = 0, .n = grid_.columns, .k = deepest_});
    const bool decodes = std::any_of(terms_.begin(), terms_.end(), [](const Term<Element>& term) {
      return term.is_bitsandbytes();
    });
    return {
        .panels = std::make_unique_for_overwrite<Element[]>(elements),
        .sums = in_place() ? nullptr
                           : std::make_unique_for_overwrite<float[]>(grid_.rows * grid_.columns),
        .decoded = decodes ? std::make_unique_for_overwrite<Element[]>(kDecodedColumns * deepest_)
                           : nullptr,
        .quantized = {}};
  }

  // A group of rows and a block of columns.
  struct Area {
    int64_t row, column, height, width;
  };
  Area area_of(int64_t task) const {
    const int64_t row = task / grid_.column_blocks * grid_.rows;
    const int64_t column = task % grid_.column_blocks * grid_.columns;
    return {row, column, std::min(grid_.rows, rows_ - row),
            std::min(grid_.columns, columns_ - column)};
  }

  void compute(int64_t task, Scratch& scratch) const {
    const Area area = area_of(task);
    const SumsView sums =
        in_place()
            ? SumsView{result_.first + area.row * result_.stride + area.column, result_.stride}
            : SumsView{scratch.sums.get(), grid_.columns};
    bool adds = !bias_.empty();
    for (int64_t at = 0; at < area.height && adds; ++at)
      std::copy_n(bias_.data() + area.column, area.width, sums.first + at * sums.stride);
    for (const Term<Element>& term : terms_) {
      ProductDestination* const end =
          &term == &terms_.back() && !in_place() ? &destination_ : nullptr;
      if (term.quantized() != nullptr)
        add_quantized(term, area, adds, sums, scratch, end);
      else
        add_matrix(term, area, adds, sums, scratch, end);
      adds = true;
    }
  }

  // Passes tiles of rows to `end`, unless it is null, while they are in cache.
  void add_matrix(const Term<Element>& term, const Area& area, bool adds, SumsView sums,
                  Scratch& scratch, ProductDestination* end) const {
    for (int64_t k = 0; k == 0 || k < term.inner(); k += kInner) {
      const GemmShape block{area.height, area.width, std::min(kInner, term.inner() - k)};
      const PackedView<Element> packed =
          term.panels(area.column, k, block, scratch.panels.get(), scratch.decoded.get());
      const bool last = k + kInner >= term.inner();
      for (int64_t tile = 0; tile < area.height; tile += kPanelTileRows) {
        const int64_t rows = std::min(kPanelTileRows, area.height - tile);
        float* tile_sums = sums.first + tile * sums.stride;
        loops_.multiply(term.a(area.row + tile, k), term.stride_a(), packed, tile_sums, sums.stride,
                        {rows, area.width, block.k}, adds || k > 0);
        if (last && end != nullptr)
          end->take(tile_sums, sums.stride, area.row + tile, area.column, {rows, area.width});
      }
    }
  }

  void add_quantized(const Term<Element>& term, const Area& area, bool adds, SumsView sums,
                     Scratch& scratch, ProductDestination* end) const {
    term.quantized()->multiply(term.rows(area.row, area.height), area.column, area.width,
                               sums.first, sums.stride, adds, scratch.quantized);
    if (end != nullptr)
      end->take(sums.first, sums.stride, area.row, area.column, {area.height, area.width});
  }

  bool in_place() const { return result_.first != nullptr; }

  const SimdKernels<Element>& loops_ = simd_kernels<Element>();
  ProductDestination& destination_;
  SumsView result_;
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
    Product<Element>(terms, options.bias_N, rounded).run();
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
    LargestOfRows largest(first.size(0), num_columns, kBlockColumns / 2);
    Product<Element>(terms, bias_N, largest).run();
    columns_M = largest.columns();
  });
  return columns_M;
}

}  // namespace convoy::kernels
