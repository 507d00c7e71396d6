// torch's device guard: how the framework switches devices and streams and uses events.
#pragma once

namespace dipu {

void register_guard();

}  // namespace dipu
