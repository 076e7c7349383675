// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/score_file.h"

#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/safetensors.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScores = "log_probabilities";
constexpr double kNoScore = std::numeric_limits<double>::quiet_NaN();

std::string checksum_of(std::span<const std::byte> bytes) {
  return fmt::format("{:08x}",
                     crc32c({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, 0));
}

// Throws DataError for a damaged file.
std::vector<double> scores_in(const io::SafetensorsFile& file, int64_t num_rows) {
  std::vector<double> scores(static_cast<size_t>(num_rows));
  const io::TensorView& stored = file.require(kScores);
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(scores));
  const auto checksum = file.metadata().find("crc32c");
  CONVOY_CHECK(stored.dtype == io::Dtype::F64 && stored.bytes.size() == bytes.size() &&
                   checksum != file.metadata().end(),
               DataError, "wanted {} scores", num_rows);
  io::copy_bytes(stored, bytes);
  CONVOY_CHECK(checksum->second == checksum_of(bytes), DataError, "the checksum does not match");
  return scores;
}

// Compares bits, so that NaN equals NaN.
bool same_bits(const std::vector<double>& left, const std::vector<double>& right) {
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size() * sizeof(double)) == 0;
}

}  // namespace

ScoreFile::ScoreFile(const fs::path& folder, const std::string& key, const Log& log)
    : path_(folder.empty() ? fs::path() : folder / (key + ".scores.safetensors")), log_(log) {}

std::vector<double> ScoreFile::read(int64_t num_rows) const {
  std::error_code ignored;
  if (!path_.empty() && fs::exists(path_, ignored)) {
    try {
      return scores_in(io::SafetensorsFile(path_), num_rows);
    } catch (const Error& error) {
      log_.warning(
          fmt::format("the scores of the reference in {} are damaged ({}) and are computed "
                      "anew",
                      path_.string(), error.what()));
    }
  }
  return std::vector<double>(static_cast<size_t>(num_rows), kNoScore);
}

void ScoreFile::write(const std::vector<double>& scores) const {
  if (path_.empty()) return;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(scores));
  try {
    fs::create_directories(path_.parent_path());
    io::write_safetensors(path_,
                          {io::tensor_source(kScores, io::Dtype::F64, {std::ssize(scores)}, bytes)},
                          {{"crc32c", checksum_of(bytes)}});
  } catch (const std::exception& error) {
    log_.warning(fmt::format("the scores of the reference are not kept in {}: {}", path_.string(),
                             error.what()));
  }
}

ScoreFile::Reader ScoreFile::reader(std::vector<double> scores) const {
  std::error_code ignored;
  const int64_t num_rows = std::ssize(scores);
  if (!path_.empty() && fs::exists(path_, ignored)) {
    try {
      const auto file = std::make_shared<const io::SafetensorsFile>(path_);
      if (same_bits(scores_in(*file, num_rows), scores))
        return [file, num_rows] { return scores_in(*file, num_rows); };
    } catch (const Error& error) {
      log_.detail(fmt::format("the scores of the reference stay in memory: {}", error.what()));
    }
  }
  return [scores = std::move(scores)] { return scores; };
}

}  // namespace convoy::recipes
