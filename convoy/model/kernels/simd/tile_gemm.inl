// SPDX-License-Identifier: Apache-2.0
//
// Products of bf16 on AMX: C [m, n] = A [m, k] B [k, n] over a packed B, in fp32. A tile of C has
// 16 rows and 16 columns, a tile of A 16 rows and 32 k, a tile of B 32 k and 16 columns in the
// order of a panel. Every row takes 32 k at a time, in one order, whatever rows are beside it. See
// panel_gemm.inl.

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileColumns = 16;
constexpr int64_t kTileInner = 32;
constexpr int64_t kPanelLineBytes = kPanelColumns * 2 * sizeof(BFloat16);  // one line holds two k
// Number of rows and of k of A that are packed at a time. A panel of kPackedInner k stays in the
// nearest cache.
constexpr int64_t kPackedRows = 64;
constexpr int64_t kPackedInner = 512;

// The intrinsics do not tell the compiler all memory that they read and write.
inline void finish_accesses() { asm volatile("" ::: "memory"); }

// The shapes of a thread's tiles during one product: 0 to 3 for C, of which two have `upper` rows
// and two `lower`; 4 and 5 for A; 6 and 7 for B. They remain set after the product. oneDNN may set
// other shapes between two products, so the first block asks for the current shapes, which costs a
// fifteenth of setting them.
class TileShapes {
 public:
  void set(int64_t upper, int64_t lower) {
    if (upper == upper_ && lower == lower_) return;
    upper_ = upper;
    lower_ = lower;
    Configuration wanted;
    for (int tile = 0; tile < 8; ++tile) {
      const bool is_lower = tile == 2 || tile == 3 || tile == 5;
      wanted.row_bytes[tile] = 64;
      wanted.rows[tile] = static_cast<uint8_t>(tile >= 6 ? kTileRows : is_lower ? lower : upper);
    }
    Configuration found;
    _tile_storeconfig(&found);
    finish_accesses();
    if (std::memcmp(&wanted, &found, sizeof wanted) != 0) _tile_loadconfig(&wanted);
  }

 private:
  // The operand of LDTILECFG: Intel's Software Developer's Manual, volume 1, section 18.3.
  struct alignas(64) Configuration {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
  };

  int64_t upper_ = 0;
  int64_t lower_ = 0;
};

// Packs `rows` rows of A as tiles one after the other: all k of the first sixteen rows, then of the
// next. Rows that lie a power of two apart would push each other out of the nearest cache.
void pack_tiles(const BFloat16* a, int64_t stride, int64_t rows, int64_t k, BFloat16* packed) {
  const int64_t whole = k / kTileInner * kTileInner;
  const auto rest = static_cast<__mmask32>((uint64_t{1} << (k - whole)) - 1);
  for (int64_t first = 0; first < rows; first += kTileRows, a += kTileRows * stride) {
    const int64_t count = std::min(kTileRows, rows - first);
    for (int64_t row = 0; row < count; ++row) {
      const BFloat16* from = a + row * stride;
      BFloat16* to = packed + row * kTileInner;
      int64_t at = 0;
      for (; at < whole; at += kTileInner, to += count * kTileInner)
        _mm512_storeu_si512(to, _mm512_loadu_si512(from + at));
      if (rest != 0) _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(rest, from + at));
    }
    packed += count * round_up(k, kTileInner);
  }
}

// One or two tiles of rows times one or two tiles of columns. `a`: the packed tiles of the upper
// rows, then of the lower rows.
struct Block {
  const BFloat16* a = nullptr;
  int64_t upper = 0;
  int64_t lower = 0;
  const BFloat16* panel = nullptr;
  const BFloat16* panel_end = nullptr;  // the last tile of k where it is not whole, padded
  int64_t steps = 0;
  float* c = nullptr;
  int64_t stride_c = 0;
  bool accumulate = false;
};

template <bool has_lower, bool has_right>
void multiply_block(const Block& block) {
  const int64_t c_bytes = block.stride_c * static_cast<int64_t>(sizeof(float));
  float* const lower_c = block.c + kTileRows * block.stride_c;
  if (block.accumulate) {
    _tile_loadd(0, block.c, c_bytes);
    if constexpr (has_right) _tile_loadd(1, block.c + kTileColumns, c_bytes);
    if constexpr (has_lower) _tile_loadd(2, lower_c, c_bytes);
    if constexpr (has_lower && has_right) _tile_loadd(3, lower_c + kTileColumns, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  const BFloat16* upper_a = block.a;
  const BFloat16* lower_a = block.a + block.steps * block.upper * kTileInner;
  const BFloat16* b = block.panel;
  for (int64_t step = 0; step < block.steps; ++step) {
    if (step + 1 == block.steps && block.panel_end != nullptr) b = block.panel_end;
    _tile_loadd(6, b, kPanelLineBytes);
    _tile_loadd(4, upper_a, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (has_right) {
      _tile_loadd(7, b + 2 * kTileColumns, kPanelLineBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (has_lower) {
      _tile_loadd(5, lower_a, 64);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (has_lower && has_right) _tile_dpbf16ps(3, 5, 7);
    b += kTileInner * kPanelColumns;
    upper_a += block.upper * kTileInner;
    lower_a += block.lower * kTileInner;
  }
  _tile_stored(0, block.c, c_bytes);
  if constexpr (has_right) _tile_stored(1, block.c + kTileColumns, c_bytes);
  if constexpr (has_lower) _tile_stored(2, lower_c, c_bytes);
  if constexpr (has_lower && has_right) _tile_stored(3, lower_c + kTileColumns, c_bytes);
}

// C [rows, n] = A B, or C += A B, of packed rows.
void multiply_packed(const BFloat16* a, int64_t rows, PackedView<BFloat16> b, float* c,
                     int64_t stride_c, int64_t n, int64_t k, bool accumulate, TileShapes& shapes) {
  alignas(64) BFloat16 end_of_panel[kTileInner * kPanelColumns];
  const int64_t whole = k / kTileInner * kTileInner;
  Block block{.steps = round_up(k, kTileInner) / kTileInner,
              .stride_c = stride_c,
              .accumulate = accumulate};
  for (int64_t column = 0; column < n; column += kPanelColumns, b.panels += b.panel_stride) {
    block.panel = b.panels;
    if (whole < k) {
      const int64_t present = panel_elements<BFloat16>(k - whole);
      std::copy_n(b.panels + whole * kPanelColumns, present, end_of_panel);
      std::fill(end_of_panel + present, std::end(end_of_panel), BFloat16(0.0f));
      block.panel_end = end_of_panel;
    }
    finish_accesses();
    const bool has_right = n - column > kTileColumns;
    for (int64_t row = 0; row < rows; row += 2 * kTileRows) {
      block.upper = std::min(kTileRows, rows - row);
      block.lower = std::min(kTileRows, rows - row - block.upper);
      block.a = a + row * block.steps * kTileInner;
      block.c = c + row * stride_c + column;
      shapes.set(block.upper, std::max<int64_t>(block.lower, 1));
      const auto multiply_tiles =
          block.lower > 0
              ? (has_right ? multiply_block<true, true> : multiply_block<true, false>)
              : (has_right ? multiply_block<false, true> : multiply_block<false, false>);
      multiply_tiles(block);
    }
  }
}

void multiply(const BFloat16* a, int64_t stride_a, PackedView<BFloat16> b, float* c,
              int64_t stride_c, GemmShape shape, bool accumulate) {
  alignas(64) BFloat16 packed[kPackedRows * kPackedInner];
  TileShapes shapes;
  for (int64_t k = 0; k == 0 || k < shape.k; k += kPackedInner) {
    const int64_t depth = std::min(kPackedInner, shape.k - k);
    for (int64_t row = 0; row < shape.m; row += kPackedRows) {
      const int64_t rows = std::min(kPackedRows, shape.m - row);
      pack_tiles(a + row * stride_a + k, stride_a, rows, depth, packed);
      multiply_packed(packed, rows, b.from(0, k), c + row * stride_c, stride_c, shape.n, depth,
                      accumulate || k > 0, shapes);
    }
  }
}
