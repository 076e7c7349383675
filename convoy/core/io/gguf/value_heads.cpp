// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/value_heads.h"

#include <string>

namespace convoy::gguf {

std::optional<ValueHeadPart> value_head_part(const ValueHeads& heads, std::string_view own_name) {
  const auto is = [own_name](const char* end) {
    return own_name.ends_with(std::string(".linear_attn.") + end);
  };
  // Queries and keys come first.
  if (is("in_proj_qkv.weight") || is("conv1d.weight"))
    return ValueHeadPart{.first = 2 * heads.num_key_heads * heads.key_head_dim,
                         .width = heads.value_head_dim};
  if (is("in_proj_z.weight")) return ValueHeadPart{.width = heads.value_head_dim};
  if (is("in_proj_b.weight") || is("in_proj_a.weight") || is("A_log") || is("dt_bias"))
    return ValueHeadPart{};
  if (is("out_proj.weight")) return ValueHeadPart{.columns = true, .width = heads.value_head_dim};
  return std::nullopt;
}

}  // namespace convoy::gguf
