// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/ledger/row_records.h"

#include "convoy/core/jobs/job_store.h"

namespace convoy::process {
namespace {

std::string segment_name(std::string worker) {
  for (char& letter : worker) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '.' || letter == '-';
    if (!plain) letter = '_';
  }
  return worker + ".seg";
}

SyncRule sync_rule(const RowRun& run) {
  return jobs::on_network_file_system((run.folder / kInputSegment).string()) ? SyncRule::Always
                                                                             : SyncRule::AsTheStore;
}

}  // namespace

RecordWriter::RecordWriter(const RowRun& run, const std::string& worker) {
  if (!run.texts_in_store) segment_.emplace(run.folder, segment_name(worker), sync_rule(run));
}

RecordPlace RecordWriter::keep(RecordKind kind, std::string record) {
  if (!segment_) return record;
  return segment_->append(kind, record);
}

void RecordWriter::sync_if_due() {
  if (segment_) segment_->sync_if_due();
}

void RecordWriter::sync() {
  if (segment_) segment_->sync();
}

std::string RecordReader::read(const RecordPlace& place, RecordKind kind) {
  if (const auto* const record = std::get_if<std::string>(&place)) return *record;
  return segments_.read(std::get<SegmentOffset>(place), kind);
}

}  // namespace convoy::process
