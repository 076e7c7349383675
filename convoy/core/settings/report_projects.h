// SPDX-License-Identifier: Apache-2.0
//
// The projects under which trackio and wandb keep the figures of a training.
#pragma once

#include <string>

#include "convoy/core/config/resolve.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::settings {

// The project for `program`, trackio or wandb: logging.project, else TRACKIO_PROJECT or
// WANDB_PROJECT, else "convoy".
std::string report_project(const LoggingSettings& logging, const std::string& program);

// Adds an error for each project that its program would not take, if the training writes for it.
void check_report_projects(const LoggingSettings& logging, const config::Resolved& resolved,
                           config::ErrorList& errors);

}  // namespace convoy::settings
