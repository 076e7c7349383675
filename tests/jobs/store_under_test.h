// SPDX-License-Identifier: Apache-2.0
//
// The stores for the tests of convoy/core/jobs: SQLite with and without its write-ahead log, and
// the PostgreSQL server at $CONVOY_TEST_POSTGRES, if that is set (tests/jobs/postgres_test.sh).
// Each store is empty at first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "convoy/core/jobs/job_store.h"

namespace convoy::testing {

class StoreUnderTest {
 public:
  explicit StoreUnderTest(const std::string& kind);
  ~StoreUnderTest();
  StoreUnderTest(const StoreUnderTest&) = delete;
  StoreUnderTest& operator=(const StoreUnderTest&) = delete;

  std::unique_ptr<jobs::JobStore> open() const { return jobs::open_store(url_, options_); }
  const std::string& url() const { return url_; }
  const jobs::StoreOptions& options() const { return options_; }

  static std::vector<std::string> kinds();

 private:
  std::string folder_;
  std::string url_;
  jobs::StoreOptions options_;
};

}  // namespace convoy::testing
