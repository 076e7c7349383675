// SPDX-License-Identifier: Apache-2.0
#include "jobs/store_under_test.h"

#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "convoy/core/jobs/postgres/postgres_session.h"

namespace convoy::testing {

std::vector<std::string> StoreUnderTest::kinds() {
  std::vector<std::string> kinds = {"sqlite", "sqlite_rollback"};
  if (std::getenv("CONVOY_TEST_POSTGRES") != nullptr) kinds.push_back("postgres");
  return kinds;
}

StoreUnderTest::StoreUnderTest(const std::string& kind) {
  options_.rollback_journal = kind == "sqlite_rollback";
  if (kind == "postgres") {
    url_ = std::getenv("CONVOY_TEST_POSTGRES");
    jobs::PostgresSession(url_, options_)
        .run_script("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    return;
  }
  // The store's folder is in memory where that is possible: there, a killed process loses nothing
  // either, and fsync costs nothing.
  folder_ = std::filesystem::exists("/dev/shm") ? "/dev/shm/convoy-XXXXXX" : "/tmp/convoy-XXXXXX";
  if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("mkdtemp " + folder_);
  url_ = folder_ + "/store.db";
}

StoreUnderTest::~StoreUnderTest() {
  if (folder_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace convoy::testing
