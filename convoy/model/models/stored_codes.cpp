// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/stored_codes.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"

namespace convoy::models {

using kernels::BitsandbytesFormat;
using kernels::BitsandbytesWeight;
using kernels::CodeType;

namespace {

constexpr int64_t kMostElements = int64_t{1} << 40;
constexpr const char* kStateKey = ".quant_state.bitsandbytes__";

std::string module_of(const std::string& weight) { return weight.substr(0, weight.rfind('.')); }

at::ScalarType dtype_named(const io::JsonReader& reader, const std::string& key) {
  const std::string name = reader.require_string(key);
  if (name == "float32") return at::kFloat;
  if (name == "bfloat16") return at::kBFloat16;
  if (name == "float16") return at::kHalf;
  reader.fail(key, fmt::format("wanted float32, bfloat16 or float16, found `{}`", name));
}

const char* dtype_name(at::ScalarType dtype) {
  return dtype == at::kFloat ? "float32" : dtype == at::kHalf ? "float16" : "bfloat16";
}

// Writes a float as Python's repr() does, with the shortest digits that identify it.
std::string python_number(double value) {
  char text[64];
  const auto scientific =
      std::to_chars(text, text + sizeof text, value, std::chars_format::scientific);
  const std::string_view parts(text, scientific.ptr);
  const size_t mark = parts.find('e');
  int exponent = 0;
  std::from_chars(text + mark + (parts[mark + 1] == '+' ? 2 : 1), scientific.ptr, exponent);
  if (exponent < -4 || exponent >= 16) return std::string(parts);
  const auto fixed = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed);
  std::string written(text, fixed.ptr);
  if (written.find('.') == std::string::npos) written += ".0";
  return written;
}

std::string state_json(const BitsandbytesWeight& weight) {
  std::string text =
      fmt::format(R"({{"quant_type": "{}", "blocksize": {}, "dtype": "{}", "shape": [{}])",
                  kernels::code_type_name(weight.format.type), weight.format.block,
                  dtype_name(weight.dtype), fmt::join(weight.shape, ", "));
  if (weight.format.nested)
    text +=
        fmt::format(R"(, "nested_blocksize": {}, "nested_dtype": "float32", "nested_offset": {})",
                    kernels::kNestedBlock, python_number(weight.nested_offset.item<float>()));
  return text + "}";
}

at::Tensor table_tensor(CodeType type) {
  return at::tensor(
      at::ArrayRef<float>(type == CodeType::Nf4 ? kernels::nf4_table() : kernels::fp4_table()));
}

int64_t divide_up(int64_t value, int64_t by) { return (value + by - 1) / by; }

}  // namespace

// Reads all that a file has under the names of one weight.
class StoredCodesReader {
 public:
  StoredCodesReader(const std::string& weight, const FindTensor& find, const std::string& place)
      : weight_(weight), find_(find), place_(place) {}

  std::optional<StoredCodes> nibbles() {
    const io::TensorView* state = nullptr;
    for (const CodeType type : {CodeType::Nf4, CodeType::Fp4}) {
      const std::string suffix = kStateKey + std::string(kernels::code_type_name(type));
      if (find_(weight_ + suffix) == nullptr) continue;
      state = &take(suffix, io::Dtype::U8);
      codes_.format_.type = type;
    }
    if (state == nullptr) return {};
    read_state(*state);
    take_numbers();
    return std::move(codes_);
  }

  std::optional<StoredCodes> bytes() {
    const io::TensorView* const weight = find_(weight_);
    if (weight == nullptr || weight->dtype != io::Dtype::I8) return {};
    codes_.format_.type = CodeType::Int8;
    codes_.shape_ = weight->shape;
    if (weight->shape.size() != 2) fail("", "codes of two dimensions", weight->shape);
    codes_.parts_[""] = *weight;
    const std::string scales = module_of(weight_) + ".SCB";
    const io::TensorView* const absmax = find_(scales);
    if (absmax == nullptr || absmax->dtype != io::Dtype::F32 ||
        absmax->num_elements() != weight->shape[0])
      throw DataError(
          fmt::format("{} holds int8, but {} is no F32 with one number for each of its "
                      "{} rows",
                      weight_, scales, weight->shape[0]),
          {.file = place_,
           .key = scales,
           .hint = "fetch the model again, or quantise it again with `convoy models quantize`"});
    codes_.parts_[".absmax"] = *absmax;
    codes_.keys_.push_back(scales);
    take_weight_format();
    return std::move(codes_);
  }

 private:
  [[noreturn]] void fail(const std::string& suffix, const std::string& wanted,
                         const std::vector<int64_t>& found) const {
    throw DataError(
        fmt::format("{}{}: wanted {}, found [{}]", weight_, suffix, wanted, fmt::join(found, ", ")),
        {.file = place_,
         .key = weight_ + suffix,
         .hint = "fetch the model again, or quantise it again with `convoy models quantize`"});
  }

  const io::TensorView& take(const std::string& suffix, io::Dtype dtype) {
    const io::TensorView* const view = find_(weight_ + suffix);
    if (view == nullptr)
      throw DataError(
          fmt::format("{} is quantised, but {}{} is missing", weight_, weight_, suffix),
          {.file = place_,
           .key = weight_ + suffix,
           .hint = "fetch the model again, or quantise it again with `convoy models quantize`"});
    if (view->dtype != dtype)
      throw DataError(
          fmt::format("{}{}: wanted {}, found {}", weight_, suffix, io::dtype_name(dtype),
                      io::dtype_name(view->dtype)),
          {.file = place_,
           .key = weight_ + suffix,
           .hint = "fetch the model again, or quantise it again with `convoy models quantize`"});
    codes_.keys_.push_back(weight_ + suffix);
    return *view;
  }

  void read_state(const io::TensorView& view) {
    std::string text(view.bytes.size(), '\0');
    io::copy_bytes(view, std::as_writable_bytes(std::span(text)));
    const std::string where = fmt::format("{}: {}", place_, view.name);
    const io::JsonReader state(io::parse_json(text, where), where);
    if (const std::string type = state.require_string("quant_type");
        type != kernels::code_type_name(codes_.format_.type))
      state.fail("quant_type", fmt::format("`{}` contradicts the tensor's name", type));
    codes_.format_.block = state.require_int("blocksize", 32, 4096);
    if ((codes_.format_.block & (codes_.format_.block - 1)) != 0)
      state.fail("blocksize", "wanted a power of two");
    codes_.dtype_ = dtype_named(state, "dtype");
    codes_.shape_ = state.ints_or_empty("shape", 1, kMostElements);
    if (codes_.shape_.empty()) state.fail("shape", "wanted the weight's sizes");
    codes_.format_.nested = state.has("nested_offset");
    if (!codes_.format_.nested) return;
    state.require_int("nested_blocksize", kernels::kNestedBlock, kernels::kNestedBlock);
    codes_.nested_offset_ = at::full({1}, state.require_double("nested_offset", -3.4e38, 3.4e38),
                                     at::TensorOptions(at::kFloat));
  }

  const io::TensorView& take_sized(const std::string& suffix, io::Dtype dtype, int64_t elements) {
    const io::TensorView& view = take(suffix, dtype);
    if (view.num_elements() != elements)
      fail(suffix, fmt::format("{} elements", elements), view.shape);
    return view;
  }

  void take_numbers() {
    int64_t elements = 1;
    for (const int64_t size : codes_.shape_) {
      if (size > kMostElements / elements) fail("", "a weight of a sane size", codes_.shape_);
      elements *= size;
    }
    // The bytes may be stored as any type.
    const io::TensorView* const packed = find_(weight_);
    const int64_t num_bytes = divide_up(elements, 2);
    if (packed == nullptr || std::ssize(packed->bytes) != num_bytes)
      fail("",
           fmt::format("{} bytes of codes for a weight of [{}]", num_bytes,
                       fmt::join(codes_.shape_, ", ")),
           packed == nullptr ? std::vector<int64_t>{} : packed->shape);
    io::TensorView& bytes = codes_.parts_[""] = *packed;
    bytes.dtype = io::Dtype::U8;
    bytes.shape = {num_bytes, 1};

    const int64_t blocks = divide_up(elements, codes_.format_.block);
    const bool nested = codes_.format_.nested;
    codes_.parts_[".absmax"] =
        take_sized(".absmax", nested ? io::Dtype::U8 : io::Dtype::F32, blocks);
    const at::Tensor map = device::copy_to_tensor(take_sized(".quant_map", io::Dtype::F32, 16));
    if (!at::equal(map, table_tensor(codes_.format_.type)))
      throw DataError(
          fmt::format("{}.quant_map is not {}'s", weight_,
                      kernels::code_type_name(codes_.format_.type)),
          {.file = place_,
           .key = weight_ + ".quant_map",
           .hint = "fetch the model again, or quantise it again with `convoy models quantize`"});
    if (!nested) return;
    codes_.parts_[".nested_absmax"] =
        take_sized(".nested_absmax", io::Dtype::F32, divide_up(blocks, kernels::kNestedBlock));
    codes_.nested_table_ =
        device::copy_to_tensor(take_sized(".nested_quant_map", io::Dtype::F32, 256));
  }

  // bitsandbytes once had other orders of rows; 0 stands for the normal order.
  void take_weight_format() {
    const std::string key = module_of(weight_) + ".weight_format";
    const io::TensorView* const view = find_(key);
    if (view == nullptr) return;
    if (device::copy_to_tensor(*view).ne(0).any().item<bool>())
      throw DataError(
          fmt::format("{}: rows in an order of old GPUs are not supported", key),
          {.file = place_, .key = key, .hint = "save it again with bitsandbytes >= 0.45"});
    codes_.keys_.push_back(key);
  }

  const std::string& weight_;
  const FindTensor& find_;
  const std::string& place_;
  StoredCodes codes_;
};

std::optional<StoredCodes> StoredCodes::find(const std::string& weight, const FindTensor& find,
                                             const std::string& place) {
  StoredCodesReader reader(weight, find, place);
  if (std::optional<StoredCodes> found = reader.nibbles()) return found;
  return reader.bytes();
}

void StoredCodes::read_part(const std::string& suffix, int64_t begin, const at::Tensor& out) const {
  if (suffix == ".nested_offset")
    out.copy_(nested_offset_);
  else
    out.copy_(device::copy_to_tensor(parts_.at(suffix).elements(begin, out.numel())));
}

BitsandbytesWeight StoredCodes::read() const {
  BitsandbytesWeight weight =
      kernels::declare_bitsandbytes_weight(format_, shape_, dtype_, at::kCPU);
  for (const BitsandbytesWeight::Part& part : weight.parts())
    read_part(part.suffix, 0, part.tensor->view({-1}));
  if (format_.nested) weight.nested_table = nested_table_;
  return weight;
}

std::vector<io::TensorSource> sources_beside_codes(const std::string& name,
                                                   const BitsandbytesWeight& weight) {
  if (weight.format.type == CodeType::Int8)
    return {device::tensor_source(module_of(name) + ".SCB", weight.absmax),
            device::tensor_source(module_of(name) + ".weight_format", at::zeros({}, at::kByte))};
  std::vector<io::TensorSource> sources{
      device::tensor_source(name + ".absmax", weight.absmax),
      device::tensor_source(name + ".quant_map", table_tensor(weight.format.type))};
  if (weight.format.nested) {
    sources.push_back(device::tensor_source(name + ".nested_absmax", weight.nested_absmax));
    sources.push_back(device::tensor_source(name + ".nested_quant_map", weight.nested_table));
  }
  const std::string state = state_json(weight);
  const at::Tensor bytes = at::empty({static_cast<int64_t>(state.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), state.data(), state.size());
  sources.push_back(
      device::tensor_source(name + kStateKey + kernels::code_type_name(weight.format.type), bytes));
  return sources;
}

}  // namespace convoy::models
