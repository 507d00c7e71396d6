// The last error of each thread.
#include "error.h"

#include <cstdio>

namespace diopi::standalone {
namespace {

thread_local char message_of_thread[1024] = "";

}  // namespace

const char* last_error() noexcept { return message_of_thread; }

void record_error(const char* message) noexcept {
    std::snprintf(message_of_thread, sizeof message_of_thread, "%s", message);
}

}  // namespace diopi::standalone
