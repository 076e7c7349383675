// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/counting/counted_ops.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include <algorithm>

#include "convoy/machine/counting/boxed_ops.h"
#include "convoy/machine/counting/counted_attention.h"
#include "convoy/machine/counting/counted_call.h"
#include "convoy/machine/counting/counted_memory.h"
#include "convoy/machine/counting/recording.h"
#include "convoy/machine/counting/traffic.h"

namespace convoy::counting {
namespace {

constexpr c10::DispatchKeySet kCountingKeys(c10::DispatchKey::PrivateUse1);

void record_on_host(const char* name) { record({.name = name}); }

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<c10::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  record_on_host("empty");
  return at::detail::empty_generic(sizes, &counted_allocator(), kCountingKeys,
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<c10::Device>, std::optional<bool>) {
  record_on_host("empty");
  return at::detail::empty_strided_generic(sizes, strides, &counted_allocator(), kCountingKeys,
                                           c10::dtype_or_default(dtype));
}

at::Tensor as_strided(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides,
                      std::optional<int64_t> offset) {
  record_on_host("view");
  return at::native::as_strided_tensorimpl(tensor, sizes, strides, offset);
}

at::Tensor view(const at::Tensor& tensor, at::IntArrayRef sizes) {
  record_on_host("view");
  return at::native::view(tensor, sizes);
}

at::Tensor reshape_alias(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides) {
  record_on_host("view");
  return at::native::_reshape_alias(tensor, sizes, strides);
}

const at::Tensor& resize(const at::Tensor& tensor, at::IntArrayRef sizes,
                         std::optional<at::MemoryFormat>) {
  record_on_host("resize");
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  const size_t bytes =
      (static_cast<size_t>(tensor.storage_offset()) + static_cast<size_t>(tensor.numel())) *
      tensor.element_size();
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  if (bytes > storage->nbytes()) {
    storage->set_data_ptr_noswap(counted_allocator().allocate(bytes));
    storage->set_nbytes(bytes);
  }
  return tensor;
}

void count_copy_from_host(const at::Tensor& host, const at::Tensor& target, bool non_blocking) {
  Work work{
      .name = "upload", .kind = WorkKind::Upload, .host_waits = !non_blocking || !host.is_pinned()};
  work.bytes_of(content_of(target)) = distinct_bytes(target);
  record(std::move(work));
}

void count_copy_to_host(const at::Tensor& source, const at::Tensor& host, bool non_blocking) {
  Work work{.name = "download",
            .kind = WorkKind::Download,
            .host_waits = !non_blocking || !host.is_pinned()};
  work.bytes_of(content_of(source)) = distinct_bytes(source);
  record(std::move(work));
  host.zero_();
}

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool non_blocking) {
  if (target.numel() == 0) return target;
  if (!is_counted(source)) {
    count_copy_from_host(source, target, non_blocking);
  } else if (!is_counted(target)) {
    count_copy_to_host(source, target, non_blocking);
  } else {
    Work work{.name = "copy", .kind = WorkKind::Op, .launches = 1};
    work.bytes_of(content_of(source)) += distinct_bytes(source);
    work.bytes_of(content_of(target)) += distinct_bytes(target);
    record(std::move(work));
  }
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  target.resize_(source.sizes());
  return copy_from(source, target, false);
}

// LibTorch gives its sizes without values only in Python, so this device gives them. Lookups in
// caches and embeddings use this op.
at::Tensor index_select(const at::Tensor& tensor, int64_t dim, const at::Tensor& places) {
  std::vector<int64_t> sizes = tensor.sizes().vec();
  if (!sizes.empty()) sizes[at::maybe_wrap_dim(dim, tensor.dim())] = places.numel();
  at::Tensor result = at::empty(sizes, tensor.options());
  record(work_of(
      {.name = "aten::index_select", .arguments = {{tensor}, {places}}, .results = {result}}));
  return result;
}

// The value is unknown. A check counts as passed.
at::Scalar local_scalar_dense(const at::Tensor& tensor) {
  Work work{.name = "download", .kind = WorkKind::Download, .host_waits = true};
  work.bytes_of(content_of(tensor)) = distinct_bytes(tensor);
  record(std::move(work));
  return tensor.scalar_type() == at::kBool ? at::Scalar(true) : at::Scalar(0);
}

void record_stream(at::Tensor&, c10::Stream) {}

at::Tensor& set_storage_and_shape(at::Tensor& tensor, at::Storage storage, int64_t offset,
                                  at::IntArrayRef sizes, at::IntArrayRef strides) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  if (strides.empty() && !sizes.empty()) {
    impl->set_sizes_contiguous(sizes);
    impl->set_storage_offset(offset);
  } else {
    impl->set_sizes_and_strides(sizes, strides, offset);
  }
  return tensor;
}

at::Tensor& set_storage(at::Tensor& tensor, at::Storage storage) {
  return at::native::set_(tensor, std::move(storage));
}

// Only cuBLAS has this op: no CPU kernel gives its sizes.
at::Tensor mm_to_type(const at::Tensor& a, const at::Tensor& b, at::ScalarType type) {
  const at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options().dtype(type));
  record(work_of({.name = "aten::mm", .arguments = {{a}, {b}}, .results = {out}}));
  return out;
}

// Adds the product to `out`. With a factor of zero the old values of `out` are not read.
at::Tensor& addmm_to(const at::Tensor&, const at::Tensor& a, const at::Tensor& b,
                     const at::Scalar& beta, const at::Scalar&, at::Tensor& out) {
  if (beta.toDouble() == 0)
    record(work_of({.name = "aten::mm", .arguments = {{a}, {b}}, .results = {out}}));
  else
    record(work_of(
        {.name = "aten::addmm_", .arguments = {{out, /*writes=*/true}, {a}, {b}}, .results = {}}));
  return out;
}
at::Tensor& addmm_to_type(const at::Tensor& self, const at::Tensor& a, const at::Tensor& b,
                          at::ScalarType, const at::Scalar& beta, const at::Scalar& alpha,
                          at::Tensor& out) {
  return addmm_to(self, a, b, beta, alpha, out);
}

// One launch works on chunks of many tensors (ForeachReduceOp.cu, MultiTensorApply.cuh). CPUs have
// no such kernel and use a formula of other ops.
std::vector<at::Tensor> foreach_norm(at::TensorList tensors, const at::Scalar&,
                                     std::optional<at::ScalarType> type) {
  constexpr int64_t kChunk = 65536, kTensors = 110, kBlocks = 320, kCleanupTensors = 400;
  const auto up_to = [](int64_t count, int64_t step) { return (count + step - 1) / step; };
  const auto count = static_cast<int64_t>(tensors.size());
  int64_t chunks = 0, most_chunks = 1;
  OpTensors op{.name = "aten::_foreach_norm", .arguments = {}, .results = {}};
  for (const at::Tensor& tensor : tensors) {
    chunks += up_to(tensor.numel(), kChunk);
    most_chunks = std::max(most_chunks, up_to(tensor.numel(), kChunk));
    op.arguments.push_back({tensor});
  }
  const auto options = type ? tensors[0].options().dtype(*type) : tensors[0].options();
  op.arguments.push_back({at::zeros({count * most_chunks}, options), /*writes=*/true});
  op.results = {at::empty({count}, options)};
  Work work = work_of(op);
  work.launches =
      std::max(up_to(count, kTensors), up_to(chunks, kBlocks)) + up_to(count, kCleanupTensors);
  record(std::move(work));
  return op.results[0].unbind();
}

// One launch works on chunks of many tensors (ForeachBinaryOpList.cu). CPUs copy one by one.
void foreach_copy(at::TensorList to, at::TensorList from, bool) {
  constexpr int64_t kChunk = 65536, kPairs = 64, kBlocks = 320;
  const auto up_to = [](int64_t count, int64_t step) { return (count + step - 1) / step; };
  int64_t chunks = 0;
  Work work{.name = "_foreach_copy_", .kind = WorkKind::Op};
  for (size_t index = 0; index < to.size(); ++index) {
    chunks += up_to(to[index].numel(), kChunk);
    work.bytes_of(content_of(from[index])) += distinct_bytes(from[index]);
    work.bytes_of(content_of(to[index])) += distinct_bytes(to[index]);
  }
  work.launches = std::max(up_to(static_cast<int64_t>(to.size()), kPairs), up_to(chunks, kBlocks));
  record(std::move(work));
}

// A few rows are added in place. Many rows are sorted first (Embedding.cu,
// EmbeddingBackwardKernel.cu: a radix sort, segments by scans, two kernels of sums).
at::Tensor embedding_backward(const at::Tensor& grad, const at::Tensor& places, int64_t rows,
                              int64_t, bool) {
  constexpr int64_t kFewPlaces = 3072;
  const at::Tensor out = at::empty({rows, grad.size(-1)}, grad.options());
  Work work = work_of({.name = "aten::embedding_dense_backward",
                       .arguments = {{grad}, {places}},
                       .results = {out}});
  work.launches = places.numel() <= kFewPlaces ? 2 : 20;
  record(std::move(work));
  return out;
}

void own_ops(torch::Library& library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
  library.impl("_reshape_alias", &reshape_alias);
  library.impl("resize_", &resize);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_local_scalar_dense", &local_scalar_dense);
  library.impl("index_select", &index_select);
  library.impl("record_stream", &record_stream);
  library.impl("set_.source_Tensor", &at::native::set_tensor_);
  library.impl("set_.source_Storage", &set_storage);
  library.impl("set_.source_Storage_storage_offset", &set_storage_and_shape);
  register_counted_attention(library);
  library.impl("mm.dtype", &mm_to_type);
  library.impl("addmm.out", &addmm_to);
  library.impl("addmm.dtype_out", &addmm_to_type);
  library.impl("_foreach_norm.Scalar", &foreach_norm);
  library.impl("_foreach_copy_", &foreach_copy);
  library.impl("embedding_dense_backward", &embedding_backward);
}

}  // namespace

void register_counted_ops() { register_ops<&count_op>(&own_ops); }

}  // namespace convoy::counting
