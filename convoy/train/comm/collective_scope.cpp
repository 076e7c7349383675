// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/collective_scope.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "convoy/core/base/trimmed.h"

namespace convoy::comm {
namespace {

// Constant texts: records and errors keep pointing at them.
std::string_view dtype_word(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "float32";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kByte:
      return "uint8";
    default:
      return c10::toString(dtype);
  }
}

// Joins the lines of a library's error, because NCCL's own reason is on the last line.
std::string one_line(const std::string& text) {
  std::string line;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view part =
        trimmed(std::string_view(text).substr(begin, end - begin), " \t\r");
    if (!part.empty()) line.append(line.empty() ? "" : "; ").append(part);
    begin = end + 1;
  }
  return line;
}

}  // namespace

std::string_view constant_text(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  const std::lock_guard lock(mutex);
  return *texts.insert(std::move(text)).first;
}

std::string_view numbered_group(std::string_view name, int number) {
  return number == 0 ? name : constant_text(fmt::format("{} {}", name, number + 1));
}

CollectiveScope::CollectiveScope(telemetry::FlightWriter& flight,
                                 std::atomic<double>& waited_seconds, int rank, int size,
                                 telemetry::Collective collective)
    : flight_(&flight),
      waited_seconds_(&waited_seconds),
      rank_(rank),
      size_(size),
      collective_(collective),
      number_(flight.enter(collective)) {}

CommError CollectiveScope::failure(const std::string& reason) const {
  flight_->failed(number_);
  std::string what = fmt::format("{} #{} on group {}", collective_.operation, collective_.sequence,
                                 collective_.group);
  if (collective_.num_elements > 0)
    what += fmt::format(" ({} x {})", collective_.num_elements, collective_.dtype);
  return CommError(
      fmt::format("rank {} of {}: {} failed: {}", rank_, size_, what, one_line(reason)),
      {.hint = "another rank ended or did not answer in time; its own error is the cause",
       .rank = rank_});
}

CollectiveScope GroupCollectives::enter(std::string_view operation) {
  const telemetry::Collective collective{
      .group = group_, .operation = operation, .sequence = sequence_++, .group_size = size_};
  return CollectiveScope(flight_, waited_seconds_, rank_, size_, collective);
}

CollectiveScope GroupCollectives::enter(std::string_view operation, const at::Tensor& tensor) {
  CONVOY_INVARIANT(tensor.is_contiguous(), "{} of a tensor that is not contiguous", operation);
  telemetry::Collective collective{.group = group_,
                                   .operation = operation,
                                   .sequence = sequence_++,
                                   .dtype = dtype_word(tensor.scalar_type()),
                                   .num_dims = static_cast<int>(tensor.dim()),
                                   .num_elements = tensor.numel(),
                                   .bytes = static_cast<int64_t>(tensor.nbytes()),
                                   .group_size = size_};
  const size_t kept = std::min(collective.shape.size(), tensor.sizes().size());
  std::copy_n(tensor.sizes().begin(), kept, collective.shape.begin());
  return CollectiveScope(flight_, waited_seconds_, rank_, size_, collective);
}

}  // namespace convoy::comm
