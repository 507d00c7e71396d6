// Droplet's launcher with teams: a chip like a GPU, on which the conformance suite runs what only GPUs run else.
#ifndef DIOPI_TESTS_DROPLET_TEAMS_H_
#define DIOPI_TESTS_DROPLET_TEAMS_H_

// clang-format off
#include "../../../vendors/droplet/launcher.h"
#include "fiber_teams.h"
// clang-format on

#endif  // DIOPI_TESTS_DROPLET_TEAMS_H_
