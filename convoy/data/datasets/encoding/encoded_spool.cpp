// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/encoded_spool.h"

#include "convoy/core/base/error.h"

namespace convoy::data {
namespace {

struct RowHead {
  RowRecord record;
  int64_t tokens = 0;
  int64_t weights = 0;
};

template <class Value>
std::string_view bytes_of(const std::vector<Value>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)};
}

template <class Value>
void read_values(ScratchReader& reader, std::vector<Value>& into, int64_t count) {
  into.resize(static_cast<size_t>(count));
  reader.read({reinterpret_cast<char*>(into.data()), into.size() * sizeof(Value)});
}

}  // namespace

void EncodedSpool::add(const RowRecord& record, const EncodedRow& row) {
  CONVOY_INVARIANT(row.ids.size() == row.supervised.size(), "{} ids, {} mask entries",
                   row.ids.size(), row.supervised.size());
  CONVOY_INVARIANT(row.supervised.empty() || row.supervised[0] == 0,
                   "row {} supervises its first token", row.source_index);
  file_.append_plain(RowHead{record, std::ssize(row.ids), std::ssize(row.weights)});
  file_.append(bytes_of(row.ids));
  file_.append(bytes_of(row.supervised));
  file_.append(bytes_of(row.weights));
  ++num_rows_;
}

void EncodedSpool::for_each(const std::function<void(const SpooledRow&)>& take) const {
  ScratchReader reader(file_);
  std::vector<int32_t> ids;
  std::vector<uint8_t> supervised;
  std::vector<float> weights;
  for (int64_t index = 0; index < num_rows_; ++index) {
    const auto head = reader.read_plain<RowHead>();
    read_values(reader, ids, head.tokens);
    read_values(reader, supervised, head.tokens);
    read_values(reader, weights, head.weights);
    for (uint8_t& flag : supervised) flag = flag != 0;
    take({index, head.record, ids, supervised, weights});
  }
}

}  // namespace convoy::data
