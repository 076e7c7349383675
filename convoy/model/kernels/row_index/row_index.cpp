// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/row_index/row_index.h"

#include <limits>

#include "convoy/core/base/error.h"

namespace convoy::kernels {

RowIndex::RowIndex(std::vector<int64_t> starts, at::Device device) {
  device::Upload upload(device);
  *this = RowIndex(std::move(starts), upload);
  upload.send();
}

RowIndex::RowIndex(std::vector<int64_t> starts, device::Upload& upload)
    : starts_(std::move(starts)) {
  CONVOY_INVARIANT(!starts_.empty() && starts_.front() == 0 &&
                       std::is_sorted(starts_.begin(), starts_.end()) &&
                       starts_.back() <= std::numeric_limits<int32_t>::max(),
                   "row starts must ascend from 0");
  for (int64_t row = 0; row < num_rows(); ++row) longest_ = std::max(longest_, length(row));
  const std::vector<int32_t> narrow(starts_.begin(), starts_.end());
  device_starts_ = upload.add(narrow);
}

}  // namespace convoy::kernels
