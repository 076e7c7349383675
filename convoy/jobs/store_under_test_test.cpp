// SPDX-License-Identifier: Apache-2.0
#include "jobs/store_under_test.h"

#include <cstdlib>

namespace convoy::testing {

std::vector<std::string> StoreUnderTest::kinds() {
  std::vector<std::string> kinds = {"sqlite", "sqlite_rollback"};
  if (std::getenv("CONVOY_TEST_POSTGRES") != nullptr) kinds.push_back("postgres");
  return kinds;
}

StoreUnderTest::StoreUnderTest(const std::string& kind) {
  options_.rollback_journal = kind == "sqlite_rollback";
  url_ = (folder_ / "store.db").string();
}

}  // namespace convoy::testing
