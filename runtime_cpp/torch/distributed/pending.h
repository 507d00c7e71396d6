// The works of a group that have not ended: what abort() ends.
#pragma once

#include <exception>
#include <mutex>
#include <unordered_map>

#include "work.h"

namespace dipu::distributed {

class Pending {
public:
    // Throws c10::Error when the group was aborted.
    void add(const StagedWorkPtr& work);
    // Says what the host does for `work`, to be aborted with it. Throws c10::Error, and aborts it, when the group was aborted.
    void set_host_work(const StagedWorkPtr& work, const c10::intrusive_ptr<c10d::Work>& host_work);
    void remove(const StagedWorkPtr& work);

    // Ends all works with `error`, and their sends and receives on the host.
    void abort(const std::exception_ptr& error);
    // Ends the sends and receives alone; their works fail.
    void abort_host_works();
    bool aborted() const;

private:
    struct Entry {
        StagedWorkPtr work;
        c10::intrusive_ptr<c10d::Work> host_work;  // of a send or a receive that has started
    };

    void check_not_aborted() const;

    mutable std::mutex mutex_;
    std::unordered_map<const StagedWork*, Entry> entries_;
    bool aborted_ = false;
};

}  // namespace dipu::distributed
