// SPDX-License-Identifier: Apache-2.0
//
// Weights of few bits on GPUs. Few rows are multiplied by the codes as they lie in memory. For many
// rows one kernel decodes the weight, into memory that the next product uses again.
#include <bit>

#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/frozen_linear/coded_product_launch.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear_ops.h"
#include "convoy/model/kernels/integer_weight/grouped_codes.h"

namespace convoy::kernels {
namespace {

// The most rows for a product with codes. Such a product reads all codes, up to a byte a value, for
// each 32 rows. Decoding reads them once, and writes and reads two bytes a value in bf16.
constexpr int64_t kMostCodedRows = 128;
// With more outputs, two of a block's warps share the rows that they read; with fewer there would
// not be blocks enough.
constexpr uint32_t kOutputsOfNarrowBlocks = 16'384;

// The codes of a weight in the form that a product of few rows reads.
struct ReadableCodes {
  const char* form;                 // names the kernels: coded_product_FORM_n
  int64_t vector_inputs;            // inputs that lie in 16 bytes
  std::vector<at::Tensor> tensors;  // codes first
  gpu::CodedProductLaunch launch;   // the launch without rows of x
};

PartlyMoved moved_in(const ReadableCodes& codes, uint32_t passes) {
  PartlyMoved moved;
  for (const at::Tensor& tensor : codes.tensors)
    moved.emplace_back(tensor.const_data_ptr(), passes * static_cast<int64_t>(tensor.nbytes()));
  return moved;
}

// Scales are read by words of 4 bytes.
bool fits_words(const at::Tensor& tensor) {
  return tensor.nbytes() % sizeof(uint32_t) == 0 &&
         reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % sizeof(uint32_t) == 0;
}

bool takes(const at::Tensor& x_TI, const at::Tensor& bias_O, const ReadableCodes& codes) {
  const bool has_bf16 = x_TI.scalar_type() == at::kBFloat16 &&
                        (!bias_O.defined() || bias_O.scalar_type() == at::kBFloat16);
  return has_bf16 && x_TI.size(0) > 0 && x_TI.size(1) % codes.vector_inputs == 0 &&
         fits_vectors({x_TI, codes.tensors.front()}, x_TI.size(1)) &&
         std::all_of(codes.tensors.begin(), codes.tensors.end(), fits_words);
}

at::Tensor few_rows_product(const at::Tensor& x_TI, const at::Tensor& bias_O,
                            const ReadableCodes& codes) {
  gpu::CodedProductLaunch launched = codes.launch;
  const at::Tensor y_TO = at::empty({x_TI.size(0), launched.outputs}, x_TI.options());
  launched.x = x_TI.const_data_ptr();
  launched.bias = bias_O.defined() ? bias_O.const_data_ptr() : nullptr;
  launched.y = y_TO.mutable_data_ptr();
  launched.rows = static_cast<uint32_t>(x_TI.size(0));
  const uint32_t tiles = gpu::row_tiles_of(launched.rows);
  const uint32_t pass_rows = tiles * gpu::kTileRows;
  launched.pass_bits = std::bit_width((launched.rows + pass_rows - 1) / pass_rows - 1);
  if (tiles > 1 && launched.outputs > kOutputsOfNarrowBlocks) launched.output_warp_bits = 1;
  const uint32_t outputs = gpu::outputs_of_warp(tiles) << launched.output_warp_bits;
  launch(x_TI, fmt::format("coded_product_{}_{}", codes.form, tiles),
         uint64_t{(launched.outputs + outputs - 1) / outputs} << launched.pass_bits, launched,
         moved_in(codes, 1u << launched.pass_bits));
  return y_TO;
}

// y + A B, or y where A and B are undefined.
at::Tensor plus_product(const at::Tensor& y, const ProductTerm& added) {
  return added.a_MK.defined() ? y.addmm_(added.a_MK, added.b_KN) : y;
}

class CodedLinear : public PackedLinear {
 public:
  explicit CodedLinear(const at::Tensor& bias_O) : bias_O_(bias_O) {}

  at::Tensor forward(const at::Tensor& x_TI, const ProductTerm& added) override {
    const ReadableCodes codes = readable_codes();
    if (x_TI.size(0) > kMostCodedRows || !takes(x_TI, bias_O_, codes))
      return decoded(x_TI, bias_O_)->forward(x_TI, added);
    return plus_product(few_rows_product(x_TI, bias_O_, codes), added);
  }
  at::Tensor input_gradient(const at::Tensor& grad_TO, const ProductTerm& added,
                            const at::Tensor& sum_TI) override {
    return decoded(grad_TO, {})->input_gradient(grad_TO, added, sum_TI);
  }

 protected:
  virtual ReadableCodes readable_codes() const = 0;
  virtual at::Tensor values(at::ScalarType dtype) const = 0;

 private:
  std::shared_ptr<PackedLinear> decoded(const at::Tensor& beside, const at::Tensor& bias_O) const {
    return kFrozenLinearAten.pack(values(beside.scalar_type()), bias_O);
  }

  at::Tensor bias_O_;
};

class GroupedLinear : public CodedLinear {
 public:
  GroupedLinear(const IntegerWeight& weight, const at::Tensor& bias_O)
      : CodedLinear(bias_O), codes_(weight) {}

 protected:
  ReadableCodes readable_codes() const override {
    return {.form = "groups",
            .vector_inputs = 32,
            .tensors = {codes_.words_OW, codes_.scales_OG2},
            .launch = {.codes = codes_.words_OW.const_data_ptr(),
                       .scales = codes_.scales_OG2.const_data_ptr(),
                       .inputs = static_cast<uint32_t>(codes_.inputs),
                       .outputs = static_cast<uint32_t>(codes_.words_OW.size(0)),
                       .group_bits = static_cast<uint32_t>(
                           std::countr_zero(static_cast<uint64_t>(codes_.group_inputs))),
                       .groups = static_cast<uint32_t>(codes_.scales_OG2.size(1))}};
  }
  at::Tensor values(at::ScalarType dtype) const override { return codes_.decode(dtype); }

 private:
  GroupedCodes codes_;
};

class BitsandbytesLinear : public CodedLinear {
 public:
  BitsandbytesLinear(const BitsandbytesWeight& weight, const at::Tensor& bias_O)
      : CodedLinear(bias_O), weight_(weight) {}

 protected:
  ReadableCodes readable_codes() const override {
    const bool bytes = weight_.format.type == CodeType::Int8;
    ReadableCodes codes{.form = bytes ? "bytes" : "table",
                        .vector_inputs = bytes ? 16 : 32,
                        .tensors = {weight_.codes, weight_.absmax},
                        .launch = {.codes = weight_.codes.const_data_ptr(),
                                   .scales = weight_.absmax.const_data_ptr(),
                                   .inputs = static_cast<uint32_t>(weight_.shape[1]),
                                   .outputs = static_cast<uint32_t>(weight_.shape[0]),
                                   .step = static_cast<float>(kInt8Step)}};
    if (bytes) return codes;
    codes.launch.group_bits =
        static_cast<uint32_t>(std::countr_zero(static_cast<uint64_t>(weight_.format.block)));
    const NibbleTable& table = weight_.format.type == CodeType::Nf4 ? nf4_table() : fp4_table();
    std::copy(table.begin(), table.end(), codes.launch.table);
    if (!weight_.format.nested) return codes;
    codes.form = "nested";
    codes.tensors.push_back(weight_.nested_absmax);
    codes.launch.nested_absmax = weight_.nested_absmax.const_data_ptr<float>();
    codes.launch.nested_offset = weight_.nested_offset.const_data_ptr<float>();
    codes.launch.nested_table = weight_.nested_table.const_data_ptr<float>();
    return codes;
  }
  at::Tensor values(at::ScalarType dtype) const override { return decode_weight(weight_, dtype); }

 private:
  BitsandbytesWeight weight_;
};

std::shared_ptr<PackedLinear> pack_bitsandbytes(const BitsandbytesWeight& weight,
                                                const at::Tensor& bias_O) {
  return std::make_shared<BitsandbytesLinear>(weight, bias_O);
}

// Int8 is bitsandbytes' format of 8 bits; only the unit of its scales differs.
std::shared_ptr<PackedLinear> pack_integer(const IntegerWeight& weight, const at::Tensor& bias_O) {
  if (weight.format.weight != WeightFormat::Int8)
    return std::make_shared<GroupedLinear>(weight, bias_O);
  BitsandbytesWeight bytes;
  bytes.format.type = CodeType::Int8;
  bytes.shape = weight.codes_OI.sizes().vec();
  bytes.dtype = weight.dtype;
  bytes.codes = weight.codes_OI;
  bytes.absmax = weight.scales_OG.view({-1}).div(kInt8Step);
  return pack_bitsandbytes(bytes, bias_O);
}

}  // namespace

const FrozenLinearOps kFrozenLinearCuda = {kFrozenLinearAten.pack, pack_integer, pack_bitsandbytes};

}  // namespace convoy::kernels
