// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/data/datasets/formats/compressor.h"
#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/scratch_file.h"

namespace convoy::data {

// Stores rows, compressed, in a file without a name. They are read back after the last row was
// added. The file disappears with the process. One thread.
class RowSpool {
 public:
  // Throws IoError when `folder` is not writable.
  explicit RowSpool(const std::filesystem::path& folder);

  void add(const std::string& json);  // one row, on one line. Throws IoError
  // Returns the stored rows. No row may be added afterwards. The spool must outlive the source.
  std::unique_ptr<RowSource> rows();

 private:
  void flush();

  ScratchFile file_;
  std::unique_ptr<Compressor> compressor_;
  std::string pending_;
};

}  // namespace convoy::data
