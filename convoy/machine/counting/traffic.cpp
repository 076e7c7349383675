// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/counting/traffic.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "convoy/machine/counting/counted_memory.h"

namespace convoy::counting {
namespace {

using Names = std::initializer_list<std::string_view>;

bool is_one_of(const std::string& name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// True when the op reads only those elements of its first tensor that the result takes.
bool gathers(const std::string& name) {
  return is_one_of(name, {"aten::index_select", "aten::embedding", "aten::gather", "aten::index",
                          "aten::take", "aten::take_along_dim"});
}

// True when the op writes only those elements of its first tensor that its last tensor goes to.
bool scatters(const std::string& name) {
  return is_one_of(name, {"aten::index_copy_", "aten::index_put_", "aten::_index_put_impl_",
                          "aten::scatter_", "aten::index_add_", "aten::scatter_add_"});
}

bool only_writes(const std::string& name) {
  return is_one_of(name, {"aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_"});
}

// The index of a product's left matrix among the op's tensors; nothing: the op is no product.
std::optional<size_t> left_matrix(const std::string& name) {
  if (is_one_of(name, {"aten::mm", "aten::bmm", "aten::mv", "aten::_int_mm", "aten::linear",
                       "aten::_weight_int4pack_mm", "aten::_weight_int8pack_mm"}))
    return 0;
  if (is_one_of(name, {"aten::addmm", "aten::addmm_", "aten::baddbmm", "aten::baddbmm_",
                       "aten::addmv", "aten::_addmm_activation"}))
    return 1;
  return std::nullopt;
}

// The result of a product: a new tensor, or the one that the op writes.
at::Tensor product_of(const OpTensors& op) {
  if (!op.results.empty()) return op.results.front();
  const auto written = std::find_if(op.arguments.begin(), op.arguments.end(),
                                    [](const auto& argument) { return argument.writes; });
  return (written == op.arguments.end() ? op.arguments.front() : *written).tensor;
}

void add_product(const OpTensors& op, size_t left, Work& work) {
  if (left >= op.arguments.size()) return;
  const at::Tensor& a = op.arguments[left].tensor;
  const at::Tensor out = product_of(op);
  if (a.dim() == 0 || out.dim() == 0) return;
  const int64_t columns = out.dim() > 1 ? out.size(-1) : 1;
  const int64_t rows = out.dim() > 1 ? out.size(-2) : out.size(-1);
  work.flops = 2.0 * static_cast<double>(out.numel()) * static_cast<double>(a.size(-1));
  work.product = {.batch = out.numel() / std::max<int64_t>(rows * columns, 1),
                  .rows = rows,
                  .columns = columns,
                  .inner = a.size(-1),
                  .on_tensor_cores = a.element_size() <= 2};
}

// Sorts rows by radix sort of their keys and places, eight bits per pass (Sort.cu, SortStable.cu).
// Fewer than 128 rows are sorted one after another, each with a histogram and its sums first; more
// rows are sorted together.
void add_sort(const OpTensors& op, Work& work) {
  constexpr int64_t kFewRows = 128;
  constexpr double kPlaceBytes = 8;
  const at::Tensor& keys = op.arguments.front().tensor;
  const int64_t rows = keys.dim() == 0 ? 1 : keys.numel() / std::max<int64_t>(keys.size(-1), 1);
  const auto passes = static_cast<int64_t>(keys.element_size());
  work.launches = rows < kFewRows ? rows * (2 + passes) : 2 + passes;
  work.bytes_of(content_of(keys)) += 2.0 * static_cast<double>(passes - 1) *
                                     static_cast<double>(keys.numel()) *
                                     (static_cast<double>(keys.element_size()) + kPlaceBytes);
}

// Launches of an op that starts several kernels.
int64_t launches_of(const std::string& name, size_t tensors) {
  constexpr size_t kCatTogether = 128;  // Shape.cu
  if (name == "aten::cat") return static_cast<int64_t>((tensors + kCatTogether - 1) / kCatTogether);
  if (name == "aten::topk")
    return 12;  // TensorTopK.cu: counts and sums by digit, gather, a small sort
  if (name == "aten::nonzero") return 4;        // Nonzero.cu: count, copy, flagged select in two
  if (name == "aten::masked_select") return 5;  // uses nonzero
  if (name == "aten::multinomial") return 3;
  return 1;
}

}  // namespace

double distinct_bytes(const at::Tensor& tensor) {
  double elements = 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim)
    if (tensor.stride(dim) != 0 || tensor.size(dim) == 0)
      elements *= static_cast<double>(tensor.size(dim));
  return elements * static_cast<double>(tensor.element_size());
}

Content content_of(const at::Tensor& tensor) {
  const auto block = counted_memory().find(tensor.storage().data());
  return block ? block->content : Content::Other;
}

Work work_of(const OpTensors& op) {
  Work work{.name = op.name.substr(op.name.find("::") + 2),
            .kind = WorkKind::Op,
            .launches = launches_of(op.name, op.arguments.size())};
  double of_results = 0;
  for (const at::Tensor& result : op.results) {
    of_results += distinct_bytes(result);
    work.bytes_of(Content::Other) += distinct_bytes(result);
  }
  for (size_t index = 0; index < op.arguments.size(); ++index) {
    const auto& [tensor, writes] = op.arguments[index];
    double bytes = distinct_bytes(tensor);
    if (index == 0 && gathers(op.name))
      bytes = std::min(bytes, of_results);
    else if (index == 0 && scatters(op.name))
      bytes = std::min(bytes, distinct_bytes(op.arguments.back().tensor));
    else if (writes && !only_writes(op.name))
      bytes *= 2;
    work.bytes_of(content_of(tensor)) += bytes;
  }
  if (const auto left = left_matrix(op.name)) add_product(op, *left, work);
  if (is_one_of(op.name, {"aten::sort", "aten::argsort"}) && !op.arguments.empty())
    add_sort(op, work);
  const auto nothing = [](const at::Tensor& tensor) { return tensor.numel() == 0; };
  if (std::all_of(op.results.begin(), op.results.end(), nothing) &&
      std::all_of(op.arguments.begin(), op.arguments.end(), [&](const auto& argument) {
        return !argument.writes || nothing(argument.tensor);
      }))
    return {.name = work.name};
  return work;
}

}  // namespace convoy::counting
