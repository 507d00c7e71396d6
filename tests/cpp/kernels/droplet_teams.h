// Droplet's launcher with teams: a chip like a GPU, on which the conformance suite runs what only GPUs run else.
#pragma once

// clang-format off
#include "../../../vendors/droplet/launcher.h"
#include "fiber_teams.h"
// clang-format on
