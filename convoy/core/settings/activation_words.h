// SPDX-License-Identifier: Apache-2.0
//
// Words about the 8-bit inputs of linear layers, shared by the settings that choose them.
#pragma once

namespace convoy::settings {

inline constexpr const char* kActivationsHelp =
    "inputs of linear layers of 8 or 4 bits on CPUs: the model's values, or rounded to 8 bits, 32 "
    "at a time, for products of whole numbers: faster, another rounding";
inline constexpr const char* kActivationsNeedCodes =
    "activations int8 are multiplied with weights of 8 or 4 bits, found weights in the model's "
    "type";
inline constexpr const char* kActivationsNeedCodesHint =
    "add --weights int8 or int4, or leave --activations out";

}  // namespace convoy::settings
