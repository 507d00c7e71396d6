// torch's hooks of an accelerator: what generic code asks of the backend by name.
#pragma once

namespace dipu {

void register_hooks();

}  // namespace dipu
