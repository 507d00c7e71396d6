// The last error message of each thread, shared by all kernels of a vendor library.
#include "error.h"

namespace diopi::kernels {

char* last_error_buffer() noexcept {
    thread_local char message[kMessageLength] = "";
    return message;
}

}  // namespace diopi::kernels

extern "C" const char* diopiKernelsLastError(void) { return diopi::kernels::last_error_buffer(); }
