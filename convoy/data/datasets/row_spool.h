// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/data/datasets/compressor.h"
#include "convoy/data/datasets/row_source.h"
#include "convoy/data/datasets/scratch_file.h"

namespace convoy::data {

// Rows put aside in a file without a name, packed, to be read once all were seen. It is gone with
// the process. One thread.
class RowSpool {
 public:
  // Throws IoError when nothing can be written into `folder`.
  explicit RowSpool(const std::filesystem::path& folder);

  void add(const std::string& json);  // one row, on one line. Throws IoError
  // Ends adding. The spool outlives the source.
  std::unique_ptr<RowSource> rows();

 private:
  void flush();

  ScratchFile file_;
  std::unique_ptr<Compressor> compressor_;
  std::string pending_;
};

}  // namespace convoy::data
