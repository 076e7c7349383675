// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_table.h"

#include <gtest/gtest.h>

#include "convoy/farm/sweep/results/example_cell_test.h"

namespace convoy::experiments {
namespace {

TEST(SsmTable, ColumnsOfTheReferenceAndNoFalseZero) {
  const auto files = ssm_wide_csv(testing::example_results());
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].name, "results__seq_len=5_seeds=3-1.csv");
  EXPECT_EQ(files[0].text,
            "student_dim,gnc_gen_seed=3,gnc_gen_seed=3_theoretical,gnc_gen_seed=3_asymptotic,"
            "gnc_gen_seed=1,gnc_gen_seed=1_theoretical,gnc_gen_seed=1_asymptotic,gd_gen_seed=3,"
            "gd_gen_seed=1\n"
            "150,0.25,0.5,nan,nan,0.5,nan,1e-05,\n"
            "300,,0.5,nan,,0.5,nan,,2\n");
}

}  // namespace
}  // namespace convoy::experiments
