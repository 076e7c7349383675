// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/grid_blocks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/core/base/csv_record.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/farm/sweep/command/grid_values.h"
#include "convoy/farm/sweep/command/space_samples.h"
#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::sweep {
namespace {

GridBlock grid_block(const std::string& text) {
  const NamedValues axis = named_values("--grid", text);
  check_grid_values(axis.name, std::vector<nlohmann::json>(axis.values.begin(), axis.values.end()));
  GridBlock block{.names = {axis.name}, .rows = {}};
  for (const std::string& value : axis.values) block.rows.push_back({value});
  return block;
}

// The row with its values as tables show them: 1, 1.0 and 1e0 are one value.
std::vector<std::string> shown_row(std::vector<std::string> row) {
  for (std::string& value : row)
    if (const auto number = number_json(value)) value = number->dump();
  return row;
}

void check_rows(const std::string& flag, const GridBlock& block) {
  std::set<std::vector<std::string>> seen;
  for (const auto& row : block.rows)
    if (!seen.insert(shown_row(row)).second)
      throw ConfigError(fmt::format("{}: {} are there twice, for {}", flag, fmt::join(row, ", "),
                                    fmt::join(block.names, ", ")),
                        {.hint = "write it once"});
}

GridBlock zip_block(const std::vector<std::string>& texts) {
  GridBlock block;
  for (const std::string& text : texts) {
    const NamedValues axis = named_values("--zip", text);
    if (block.names.empty()) block.rows.resize(axis.values.size());
    if (axis.values.size() != block.rows.size())
      throw ConfigError(
          fmt::format("--zip takes as many values of each name: {} of {}, but {} of {}",
                      block.rows.size(), block.names.front(), axis.values.size(), axis.name),
          {.hint = "give each name as many values"});
    block.names.push_back(axis.name);
    for (size_t row = 0; row < block.rows.size(); ++row)
      block.rows[row].push_back(axis.values[row]);
  }
  check_rows("--zip", block);
  return block;
}

[[noreturn]] void refuse_line(const std::string& file, int64_t line, const std::string& what) {
  throw DataError(fmt::format("line {}: {}", line, what),
                  {.file = file,
                   .hint = "the first line names the columns, each further one has a value for "
                           "each; a value with a comma or a quote stands in quotes"});
}

void check_columns(const std::string& file, int64_t line, const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) refuse_line(file, line, "a column has no name");
    if (!seen.insert(name).second)
      refuse_line(file, line, fmt::format("the column `{}` is there twice", name));
  }
}

// Reads a small CSV file: names on the first line, and one row for each cell below it.
GridBlock csv_block(std::string_view text, const std::string& file) {
  // Byte order mark that spreadsheets write.
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const char line_end = text.find('\n') == std::string_view::npos ? '\r' : '\n';
  GridBlock block;
  CsvRecord record(',');
  CsvRecord::State state = CsvRecord::State::Whole;
  int64_t begin = 0;
  for (int64_t line = 1; !text.empty(); ++line) {
    std::string_view one = text.substr(0, text.find(line_end));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    if (state == CsvRecord::State::Whole) {
      // Python's csv module on Windows ends lines with CR CR LF if the file is open in text mode.
      if (one.find('"') == one.npos) one = one.substr(0, one.find_last_not_of('\r') + 1);
      if (one.empty()) continue;
      begin = line;
    }
    state = record.add(one);
    if (state == CsvRecord::State::Broken) refuse_line(file, begin, "text follows a closed quote");
    if (state != CsvRecord::State::Whole) continue;
    if (block.names.empty()) {
      block.names = record.cells();
      check_columns(file, begin, block.names);
      continue;
    }
    if (record.cells().size() != block.names.size())
      refuse_line(
          file, begin,
          fmt::format("wanted {} values, found {}", block.names.size(), record.cells().size()));
    block.rows.push_back(record.cells());
  }
  if (state != CsvRecord::State::Whole) refuse_line(file, begin, "a quote is not closed");
  if (block.rows.empty())
    throw DataError("it has no row",
                    {.file = file, .hint = "write a row for each cell below the names"});
  return block;
}

GridBlock file_block(const std::string& file) {
  GridBlock block = csv_block(read_file(file), file);
  check_rows("--cells", block);
  return block;
}

GridBlock sample_block(const CommandFlags& flags) {
  std::vector<SpaceAxis> axes;
  for (const std::string& text : flags.space.names) axes.push_back(SpaceAxis::parse(text));
  GridBlock block;
  for (const SpaceAxis& axis : axes) block.names.push_back(axis.name);
  // On axes of whole numbers or words, two points may give the same row. Such a row is used once.
  std::set<std::vector<std::string>> seen;
  for (const auto& point :
       unit_points(flags.sampling == "sobol" ? Sampling::Sobol : Sampling::Random, axes.size(),
                   flags.samples, flags.sample_seed)) {
    std::vector<std::string> row;
    for (size_t axis = 0; axis < axes.size(); ++axis) row.push_back(axes[axis].value(point[axis]));
    if (seen.insert(shown_row(row)).second) block.rows.push_back(std::move(row));
  }
  return block;
}

void check_names(const std::vector<GridBlock>& blocks, bool seeds_from_file) {
  std::set<std::string> seen;
  for (const GridBlock& block : blocks)
    for (const std::string& name : block.names) {
      if (name == "seed" && !seeds_from_file)
        throw ConfigError("`seed` is no name of a grid",
                          {.hint = "seeds are --num-seeds N or --seeds 0,1,2"});
      if (name == "cell")
        throw ConfigError("`cell` is the name of a cell's number", {.hint = "choose another name"});
      if (!seen.insert(name).second)
        throw ConfigError(fmt::format("values of `{}` are given twice", name),
                          {.hint = "give each name in one of --grid, --zip, --space and --cells"});
    }
}

}  // namespace

NamedValues named_values(const std::string& flag, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 >= text.size())
    throw ConfigError(fmt::format("{} needs NAME=A,B,C, found `{}`", flag, text),
                      {.hint = fmt::format("such as {} lr=0.1,0.01", flag)});
  try {
    return {.name = text.substr(0, equals), .values = listed_values(text.substr(equals + 1))};
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{} {}: {}", flag, text.substr(0, equals), error.what()),
                      error.location());
  }
}

std::vector<GridBlock> blocks_of(const CommandFlags& flags) {
  if (flags.space.names.empty() != (flags.samples == 0))
    throw ConfigError("--space NAME=LOW..HIGH and --samples N belong together",
                      {.hint = "such as --space lr=1e-5..1e-2,log --samples 20"});
  std::vector<GridBlock> blocks;
  bool seeds_from_file = false;
  if (!flags.cells.empty()) {
    blocks.push_back(file_block(flags.cells));
    const auto& names = blocks.back().names;
    seeds_from_file = std::find(names.begin(), names.end(), "seed") != names.end();
  }
  for (const std::string& text : flags.grid.names) blocks.push_back(grid_block(text));
  if (!flags.zip.names.empty()) blocks.push_back(zip_block(flags.zip.names));
  if (flags.samples > 0) blocks.push_back(sample_block(flags));
  check_names(blocks, seeds_from_file);
  if (seeds_from_file && (!flags.seeds.empty() || flags.num_seeds != 1))
    throw ConfigError(fmt::format("{} has a column `seed`", flags.cells),
                      {.hint = "leave --seeds and --num-seeds out"});
  return blocks;
}

double num_choices(const std::vector<GridBlock>& blocks) {
  double count = 1;
  for (const GridBlock& block : blocks) count *= static_cast<double>(block.rows.size());
  return count;
}

std::vector<Choice> choices(const std::vector<GridBlock>& blocks) {
  std::vector<Choice> all = {{}};
  for (const GridBlock& block : blocks) {
    std::vector<Choice> longer;
    longer.reserve(all.size() * block.rows.size());
    for (const Choice& chosen : all)
      for (const auto& row : block.rows) {
        longer.push_back(chosen);
        for (size_t at = 0; at < row.size(); ++at) longer.back()[block.names[at]] = row[at];
      }
    all = std::move(longer);
  }
  return all;
}

std::vector<GridBlock> only_names(const std::vector<GridBlock>& blocks,
                                  const std::vector<std::string>& names) {
  std::vector<GridBlock> fewer;
  for (const GridBlock& block : blocks) {
    std::vector<size_t> kept;
    GridBlock less;
    for (size_t at = 0; at < block.names.size(); ++at) {
      if (std::find(names.begin(), names.end(), block.names[at]) == names.end()) continue;
      kept.push_back(at);
      less.names.push_back(block.names[at]);
    }
    if (kept.empty()) continue;
    std::set<std::vector<std::string>> seen;
    for (const auto& row : block.rows) {
      std::vector<std::string> short_row;
      for (const size_t at : kept) short_row.push_back(row[at]);
      if (seen.insert(short_row).second) less.rows.push_back(std::move(short_row));
    }
    fewer.push_back(std::move(less));
  }
  return fewer;
}

}  // namespace convoy::sweep
