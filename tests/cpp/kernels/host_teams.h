// A launcher of plain loops that has teams.
#pragma once

// clang-format off
#include "launch/host.h"
#include "fiber_teams.h"
// clang-format on
