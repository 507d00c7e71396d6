// A launcher of plain loops that has teams.
#ifndef DIOPI_TESTS_HOST_TEAMS_H_
#define DIOPI_TESTS_HOST_TEAMS_H_

// clang-format off
#include "launch/host.h"
#include "fiber_teams.h"
// clang-format on

#endif  // DIOPI_TESTS_HOST_TEAMS_H_
