// SPDX-License-Identifier: Apache-2.0
//
// The teacher of a training (distill.teacher): a frozen model beside the one that learns, or in a
// server (distill.engine).
#pragma once

#include <cstdint>
#include <string>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/training/training_run.h"

namespace convoy::recipes {

// Reads the teacher's tokenizer and sizes, not its weights. Throws ConfigError where one of the
// model's tokens is another token of the teacher, or where the teacher has too few positions for
// `longest_row_tokens`; DataError where there is no teacher.
void require_teacher(const settings::TrainSettings& settings, const LoadedModel& base,
                     int64_t longest_row_tokens);

// Logs the teacher, and reads its weights in the type of the training's products.
LoadedModel load_teacher(const TrainingRun& run);

// Bytes of the weights of a teacher in memory. `element_bytes`: size of an element in the type of
// products. Reads names and shapes alone.
int64_t bytes_of_teacher(const settings::DistillSettings& distill, int64_t element_bytes);

// Bytes of the distributions of model and teacher in the loss.
int64_t bytes_of_teacher_loss(int64_t vocab_size, int64_t micro_batch_tokens);

// Identifies the teacher's files, for the record of a run; a server's teacher by its name alone.
std::string teacher_fingerprint(const settings::DistillSettings& distill);

}  // namespace convoy::recipes
