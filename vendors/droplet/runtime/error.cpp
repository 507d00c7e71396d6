// The last error of each thread, and the texts of the error codes.
#include "error.h"

#include <cstdio>

namespace droplet {
namespace {

struct LastError {
    tangError_t code;
    char message[512];
};
thread_local LastError last_error = {tangSuccess, ""};

}  // namespace

tangError_t record_error(tangError_t code, const char* message) noexcept {
    last_error.code = code;
    std::snprintf(last_error.message, sizeof last_error.message, "%s", message);
    return code;
}

}  // namespace droplet

tangError_t tangGetLastError(void) {
    const tangError_t code = droplet::last_error.code;
    droplet::last_error.code = tangSuccess;
    return code;
}

tangError_t tangPeekAtLastError(void) { return droplet::last_error.code; }

// The message outlives tangGetLastError(), so that a caller may ask for the code first and for the words after it.
const char* tangGetLastErrorMessage(void) { return droplet::last_error.message; }

const char* tangGetErrorString(tangError_t error) {
    switch (error) {
        case tangSuccess: return "no error";
        case tangErrorInvalidValue: return "invalid argument";
        case tangErrorMemoryAllocation: return "out of memory";
        case tangErrorInvalidDevice: return "no such device";
        case tangErrorInvalidHandle: return "no such stream, event or graph";
        case tangErrorNotReady: return "the work is still running";
        case tangErrorLaunchFailure: return "a kernel failed on the device";
        case tangErrorInitialization: return "the chip could not be started";
        case tangErrorUnknown: return "unknown error";
        case tangErrorStreamCapture: return "what was asked for does not go with recording a stream";
        case tangErrorRemote: return "another rank has ended, or makes other calls";
        case tangErrorAborted: return "the communicator was aborted";
    }
    return "not an error code of droplet";
}
