// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/nvidia/kernels.h"

#include <gtest/gtest.h>

#include <array>

#include "convoy/core/base/error.h"

namespace convoy::nvidia {
namespace {

constexpr std::array<std::string_view, 2> kTexts = {
    ".version 6.3\n.shared a[4];\n.visible .entry one(\n)\n{\n\tret;\n}\n"
    ".visible .entry two(\n)\n{\n\tbar.sync 0;\n}\n",
    ".version 6.3\n.visible .entry two_more(\n)\n{\n\tret;\n}\n"};

TEST(KernelTextOf, IsTheKernelAloneWithWhatStandsBeforeAll) {
  EXPECT_EQ(kernel_text_of(kTexts, "one"),
            ".version 6.3\n.shared a[4];\n.visible .entry one(\n)\n{\n\tret;\n}\n");
  EXPECT_EQ(kernel_text_of(kTexts, "two"),
            ".version 6.3\n.shared a[4];\n.visible .entry two(\n)\n{\n\tbar.sync 0;\n}\n");
  EXPECT_EQ(kernel_text_of(kTexts, "two_more"), kTexts[1]);
  EXPECT_THROW(kernel_text_of(kTexts, "tw"), StateError);
  EXPECT_THROW(kernel_text_of({}, "one"), StateError);
}

TEST(EarlyTextOf, WaitsBeforeTheFirstInstruction) {
  EXPECT_EQ(early_text_of(".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry one(\n"
                          "\t.param .u64 x\n)\n.maxntid 128, 1, 1\n{\n\t.reg .b32 %r<2>;\n\n"
                          "\t.shared .align 4 .b8 s[4];\n\n\tmov.u32 %r1, 0;\n\tret;\n}\n"),
            ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry one(\n"
            "\t.param .u64 x\n)\n.maxntid 128, 1, 1\n{\n\t.reg .b32 %r<2>;\n\n"
            "\t.shared .align 4 .b8 s[4];\n\n\tgriddepcontrol.wait;\n"
            "\tgriddepcontrol.launch_dependents;\n\tmov.u32 %r1, 0;\n\tret;\n}\n");
}

TEST(EarlyTextOf, WaitsWhereTheKernelSays) {
  EXPECT_EQ(early_text_of(".version 7.0\n.target sm_80\n.visible .entry one(\n)\n{\n"
                          "\t// demoted variable\n\t.shared .align 4 .b8 s[4];\n\tmov.u32 %r1, 0;\n"
                          "\t.pragma \"kernels before\";\n\tret;\n}\n"),
            ".version 7.8\n.target sm_90\n.visible .entry one(\n)\n{\n"
            "\t// demoted variable\n\t.shared .align 4 .b8 s[4];\n\t\n"
            "\tgriddepcontrol.launch_dependents;\n\tmov.u32 %r1, 0;\n"
            "\tgriddepcontrol.wait;\n\tret;\n}\n");
}

TEST(Driver, SaysWhyThereIsNone) {
  const auto driver = std::make_shared<const Driver>("/nowhere/libcuda.so.1");
  EXPECT_NE(driver->problem().find("there is no NVIDIA driver"), std::string::npos);
  EXPECT_EQ(driver->device_count(), 0);
  EXPECT_EQ(driver->version(), "unknown");
  EXPECT_THROW(Context(driver, 0), ConfigError);
  EXPECT_FALSE(driver_version("/nowhere/libcuda.so.1"));
}

}  // namespace
}  // namespace convoy::nvidia
