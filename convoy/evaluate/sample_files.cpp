// SPDX-License-Identifier: Apache-2.0
#include "convoy/evaluate/sample_files.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "convoy/base/error.h"
#include "convoy/base/files.h"

namespace convoy::evaluate {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string text_of(const json& row, const char* key, const fs::path& path, int64_t line) {
  const auto value = row.find(key);
  if (value == row.end() || !value->is_string())
    throw DataError(fmt::format("wanted \"{}\" as text in each row of samples", key),
                    {.file = path.string(), .line = line, .key = key});
  return value->get<std::string>();
}

}  // namespace

void write_samples(const fs::path& path, const std::vector<Sample>& samples) {
  AtomicFile file(path);
  for (const Sample& sample : samples) {
    const ordered_json row = {{"input", sample.input}, {"pred", sample.pred}, {"ref", sample.ref}};
    file.write(row.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  }
  file.commit();
}

std::vector<Sample> read_samples(const fs::path& path) {
  const std::string text = read_file(path);
  std::vector<Sample> samples;
  int64_t line_number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const json row = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object())
      throw DataError("wanted one JSON object per line",
                      {.file = path.string(), .line = line_number});
    // The input is only shown; the figures need the other two.
    samples.push_back({row.contains("input") ? text_of(row, "input", path, line_number) : "",
                       text_of(row, "pred", path, line_number),
                       text_of(row, "ref", path, line_number)});
  }
  return samples;
}

void write_metrics(const fs::path& path, const TextFigures& text,
                   const std::map<std::string, double>& others) {
  json figures = others;
  figures["count"] = text.count;
  figures["exact_match"] = text.exact_match;
  if (text.numeric_match) figures["numeric_match"] = *text.numeric_match;
  write_file_atomic(path, figures.dump(2) + "\n");
}

}  // namespace convoy::evaluate
