// Python before 3.14 ends daemon threads, at its end, by unwinding their stacks where they next want its lock. torch's frames
// let nothing unwind them, and the C++ runtime ends the process.
#include "daemon_threads.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <exception>

namespace dipu {
namespace {

std::terminate_handler handler_before = nullptr;

// An unwinding that is not an exception of C++, in another thread than the one that ends the process.
void sleep_or_end() {
    if (std::current_exception() == nullptr && syscall(SYS_gettid) != getpid()) {
        for (;;) {
            pause();
        }
    }
    handler_before();
}

}  // namespace

void let_daemon_threads_sleep() {
    if (handler_before == nullptr) {
        handler_before = std::set_terminate(&sleep_or_end);
    }
}

}  // namespace dipu
