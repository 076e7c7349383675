// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/architecture/spec_forms.h"

#include <gtest/gtest.h>

#include "convoy/core/io/model_folder.h"
#include "convoy/model/architecture/families/family.h"
#include "files/source_folder.h"

namespace convoy::architecture {
namespace {

using Forms = std::vector<std::string>;

Forms forms_of_golden(const std::string& name) {
  return forms_of(
      families::read_decoder_spec(io::ModelFolder::open(testing::golden_model(name).string())));
}

TEST(SpecForms, APlainDecoderHasNone) {
  DecoderSpec plain;
  plain.ropes = {RopeSpec{}};
  plain.layers = {LayerSpec{}, LayerSpec{}};
  EXPECT_EQ(forms_of(plain), Forms());
  EXPECT_EQ(forms_of_golden("mistral"), Forms());
}

TEST(SpecForms, SayWhatSetsAModelApart) {
  EXPECT_EQ(forms_of_golden("qwen3"), Forms{"norms of queries and keys"});
  EXPECT_EQ(forms_of_golden("llama"), Forms{"rotation `llama3`"});
  EXPECT_EQ(forms_of_golden("gemma3"),
            (Forms{"rotation `linear`", "norms of queries and keys",
                   "norms before and after attention and feed-forward", "norms times 1 + weight",
                   "GELU", "a scale of embeddings"}));
  EXPECT_EQ(
      forms_of_golden("gemma2"),
      (Forms{"norms before and after attention and feed-forward", "norms times 1 + weight", "GELU",
             "a scale of embeddings", "a soft cap on attention scores", "a soft cap on logits"}));
  EXPECT_EQ(forms_of_golden("glm"),
            (Forms{"a part of each head is rotated", "neighbouring features are rotated",
                   "fused gate_up_proj", "biases of queries, keys and values"}));
  EXPECT_EQ(forms_of_golden("phi3"), (Forms{"rotation `longrope`", "a part of each head is rotated",
                                            "fused qkv_proj", "fused gate_up_proj"}));
  EXPECT_EQ(
      forms_of_golden("qwen3_5-nested"),
      (Forms{"a part of each head is rotated", "norms of queries and keys",
             "norms times 1 + weight", "layers of Gated DeltaNet", "an output gate of attention"}));
  EXPECT_EQ(forms_of_golden("gemma4-nested"),
            (Forms{"rotation `proportional`", "a part of each head is rotated",
                   "norms of queries and keys", "norms before and after attention and feed-forward",
                   "norms of values without a weight", "two head sizes",
                   "keys and values shared by layers", "two widths of feed-forward",
                   "embeddings for each layer", "a scale of each layer's output", "GELU",
                   "a scale of embeddings", "a soft cap on logits"}));
  EXPECT_EQ(forms_of_golden("gemma4-keys"),
            (Forms{"rotation `proportional`", "a part of each head is rotated",
                   "norms of queries and keys", "norms before and after attention and feed-forward",
                   "norms of values without a weight", "two head sizes", "keys that are values",
                   "a scale of each layer's output", "biases of queries, keys and values",
                   "a bias of attention's output", "GELU", "a scale of embeddings"}));
  EXPECT_EQ(forms_of_golden("muse_glimmer-nested"),
            (Forms{"layers without a rotation", "norms of queries and keys without a weight",
                   "a norm of embeddings without a weight",
                   "norms before and after attention and feed-forward", "norms times 1 + weight",
                   "an output gate of attention", "a scale of logits", "a soft cap on logits"}));
}

}  // namespace
}  // namespace convoy::architecture
