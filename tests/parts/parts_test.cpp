// SPDX-License-Identifier: Apache-2.0
//
// Tests the refusals of the parts that a first `./run demo` leaves out (CONVOY_WHOLE=OFF).
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/core/pictures/picture.h"
#include "convoy/farm/experiments/registry.h"
#include "convoy/farm/experiments/self_check.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy {
namespace {

// Returns the hint of the error that `action` throws.
std::string hint_of(const auto& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.location().hint;
  }
  return "nothing was thrown";
}

TEST(PartsLeftOut, PicturesAreRefusedBeforeAnyWork) {
  const auto hint = hint_of([] { pictures::require_picture_name("--output", "loss.png"); });
  EXPECT_EQ(hint, "`./run build` adds them; or write --output picture.svg");
  EXPECT_NO_THROW(pictures::require_picture_name("--output", "loss.svg"));
  EXPECT_EQ(pictures::picture_for("loss.svg", "<svg/>"), "<svg/>");
}

TEST(PartsLeftOut, AFigureThatNobodyNamedIsLeftOutAndSaid) {
  EXPECT_TRUE(pictures::can_draw(Log(), "matrix.svg"));
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(pictures::can_draw(Log(), "run/matrix.png"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "matrix.png is left out: this build draws no PNG and PDF (`./run build` adds them)\n");
}

TEST(PartsLeftOut, EveryWorkloadIsThereByItsNameAndRefused) {
  std::set<std::string> names;
  for (const experiments::WorkloadKind& kind : experiments::workload_kinds()) {
    names.emplace(kind.name);
    EXPECT_NE(hint_of([&] { kind.flags(); }).find("`./run build`"), std::string::npos);
    EXPECT_NE(hint_of([&] {
                experiments::make_workload(std::string(kind.name), "exact");
              }).find("`./run build`"),
              std::string::npos);
    EXPECT_TRUE(kind.fields().fields.empty());
  }
  EXPECT_EQ(names, (std::set<std::string>{"ball", "mf", "ssm"}));
  EXPECT_NE(experiments::make_workload("run", ""), nullptr) << "programs are swept all the same";
  EXPECT_NE(hint_of([] { experiments::self_check({}, {}); }).find("`./run build`"),
            std::string::npos);
}

}  // namespace
}  // namespace convoy
