// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/data/datasets/formats/byte_sink.h"
#include "convoy/data/datasets/formats/compressor.h"
#include "convoy/data/datasets/formats/row_writer.h"

namespace convoy::data {

// Writes a file that appears under its name when it is complete. The suffix decides the
// compression; the content is hashed while it is written. One thread. Throws IoError.
class OutputFile : public ByteSink {
 public:
  explicit OutputFile(const std::filesystem::path& path);

  void write(std::string_view bytes) override;
  WrittenFile publish(int64_t rows);  // must be the last call

 private:
  void flush();

  std::filesystem::path path_;
  AtomicFile file_;
  std::unique_ptr<Compressor> compressor_;  // null: the file is not compressed
  std::string pending_;                     // compressed bytes that are not written yet
  Sha256 hash_;
  int64_t bytes_ = 0;
};

}  // namespace convoy::data
