// SPDX-License-Identifier: Apache-2.0
//
// One pass over the rows of a data set: parsed and processed on all cores, delivered in order, in
// bounded memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/base/usable_cpus.h"
#include "convoy/data/datasets/encoding/ordered_work.h"
#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/sources/dataset.h"

namespace convoy::data {

struct RowPass {
  Dataset dataset = {};
  BadRows bad_rows = BadRows::Error;
};

struct PassReport {
  int64_t rows_read = 0;  // number of rows read, bad ones included
  BadRowList bad;
};

// A row, or the reason why it could not be read.
struct ReadRow {
  int64_t index = 0;
  RawRow raw = {};
  std::optional<DataError> error = {};
};

// Reads at most `count` rows. If an error follows rows that were already read, it is stored in
// `later`. Returns nothing at the end.
std::vector<ReadRow> read_rows(RowSource& rows, size_t count, int64_t& num_read,
                               std::exception_ptr& later);

// Calls `work` on all cores, for every row that can be cut out of `rows`; `work` must not throw for
// a fault of one row. `put` gets the results in order. Throws DataError when the rest of a file is
// unreadable.
template <class Result>
void for_each_read_row(RowSource& rows, const std::function<Result(ReadRow)>& work,
                       const std::function<void(Result)>& put) {
  using Turn = std::vector<ReadRow>;
  constexpr size_t kRowsPerTurn = 32;
  int64_t num_read = 0;
  std::exception_ptr later;
  const OrderedWork<Turn, std::vector<Result>> steps{
      .pull = [&]() -> std::optional<Turn> {
        Turn turn = read_rows(rows, kRowsPerTurn, num_read, later);
        if (turn.empty()) return std::nullopt;
        return turn;
      },
      .work =
          [&](Turn turn) {
            std::vector<Result> results;
            for (ReadRow& read : turn) results.push_back(work(std::move(read)));
            return results;
          },
      .put =
          [&](std::vector<Result> results) {
            for (Result& result : results) put(std::move(result));
          }};
  work_in_order(steps, usable_cpus());
}

// Calls `work` on all cores; a DataError from it marks the row as bad. `put` gets the results of
// the good rows, in order. Throws DataError as `bad_rows` says.
template <class Result>
PassReport for_each_row(RowSource& rows, BadRows bad_rows,
                        const std::function<Result(const Row&)>& work,
                        const std::function<void(Result)>& put) {
  struct Worked {
    int64_t index = 0;
    std::optional<Result> result = {};
    int64_t characters_replaced = 0;
    std::optional<DataError> error = {};
  };
  PassReport report;
  for_each_read_row<Worked>(
      rows,
      [&](ReadRow read) {
        Worked worked{.index = read.index, .error = std::move(read.error)};
        if (worked.error) return worked;
        try {
          const Row row = parse_row(std::move(read.raw), bad_rows);
          worked.characters_replaced = row.characters_replaced;
          worked.result.emplace(work(row));
        } catch (const DataError& error) {
          worked.error = error;
        }
        return worked;
      },
      [&](Worked worked) {
        report.rows_read = worked.index + 1;
        report.bad.add_replaced(worked.characters_replaced);
        if (worked.error)
          report.bad.add(*worked.error, worked.index, report.rows_read, bad_rows);
        else
          put(std::move(*worked.result));
      });
  return report;
}

template <class Result>
PassReport for_each_row(const RowPass& pass, const std::function<Result(const Row&)>& work,
                        const std::function<void(Result)>& put) {
  return for_each_row<Result>(*open_dataset(pass.dataset), pass.bad_rows, work, put);
}

}  // namespace convoy::data
