// SPDX-License-Identifier: Apache-2.0
//
// Writes and reads the records of a run, which are in segments of its folder or in its store. One
// thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "convoy/farm/process/ledger/ledger_plan.h"
#include "convoy/farm/process/ledger/ledger_record.h"
#include "convoy/farm/process/ledger/segment.h"

namespace convoy::process {

class RecordWriter {
 public:
  // Opens the worker's segment in the run's folder. Throws IoError.
  RecordWriter(const RowRun& run, const std::string& worker);

  // Keeps a record. The record is safe once its place is in the store, if sync_if_due() was called
  // before the place was stored. Throws IoError.
  RecordPlace keep(RecordKind kind, std::string record);
  void sync_if_due();
  void sync();

 private:
  std::optional<SegmentWriter> segment_;  // null if records are in the store
};

class RecordReader {
 public:
  explicit RecordReader(const RowRun& run) : segments_(run.folder) {}

  // Throws DataError, like SegmentReader::read().
  std::string read(const RecordPlace& place, RecordKind kind);

 private:
  SegmentReader segments_;
};

}  // namespace convoy::process
