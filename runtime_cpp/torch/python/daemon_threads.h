// Daemon threads of Python at the end of the process.
#pragma once

namespace dipu {

// From now on, a thread that Python ends in the middle of an operator sleeps. More calls do nothing.
void let_daemon_threads_sleep();

}  // namespace dipu
