// A table of unfinished works.
#include "pending.h"

#include <c10/util/Exception.h>

#include <utility>

namespace dipu::distributed {

void Pending::check_not_aborted() const {
    TORCH_CHECK_WITH(DistBackendError, !aborted_,
                     "dicl: this process group was aborted; call destroy_process_group() and make a new one");
}

void Pending::add(const StagedWorkPtr& work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_not_aborted();
    entries_[work.get()] = {work, {}};
}

void Pending::set_host_work(const StagedWorkPtr& work, const c10::intrusive_ptr<c10d::Work>& host_work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_) {
        host_work->abort();
    }
    check_not_aborted();
    entries_[work.get()].host_work = host_work;
}

void Pending::remove(const StagedWorkPtr& work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    entries_.erase(work.get());
}

void Pending::abort(const std::exception_ptr& error) {
    std::unordered_map<const StagedWork*, Entry> ended;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        aborted_ = true;
        ended = std::exchange(entries_, {});
    }
    for (const auto& [address, entry] : ended) {
        entry.work->fail(error);
        if (entry.host_work) {
            entry.host_work->abort();
        }
    }
}

void Pending::abort_host_works() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [address, entry] : entries_) {
        if (entry.host_work) {
            entry.host_work->abort();
        }
    }
}

bool Pending::aborted() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return aborted_;
}

}  // namespace dipu::distributed
