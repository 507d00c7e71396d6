// What a process group has failed with: one error, however many of its works and threads find it.
#pragma once

#include <exception>
#include <mutex>

namespace dipu::collectives {

class GroupFailure {
public:
    // The group's error: `error` if it is the first. `tell`: no caller gets it now, so the next one that waits for the device
    // is told, unless somebody was told before.
    std::exception_ptr set(const std::exception_ptr& error, bool tell);
    std::exception_ptr error() const;  // null while there is none
    void rethrow() const;              // nothing while there is none

private:
    mutable std::mutex mutex_;
    std::exception_ptr error_;
};

}  // namespace dipu::collectives
