// SPDX-License-Identifier: Apache-2.0
//
// The form of answers that call tools, in the words of the model's own format, so that
// ToolCallReader reads the calls back.
#pragma once

#include "convoy/apps/recipes/serving/api_form.h"
#include "convoy/apps/recipes/serving/api_tools.h"
#include "convoy/apps/recipes/serving/tool_calls.h"

namespace convoy::recipes {

// For rules that bind. Required calls are the whole answer; else calls stand where the format has
// them, among text or in its place. Arguments match the schema of a strict function, and of one
// that does not say `strict` where calls are required; others are any object. Throws ApiError when
// the format is None, or when a schema is not of an object.
AskedForm form_of_calls(const CallRules& rules, ToolFormat format, const CallTags& tags);

}  // namespace convoy::recipes
