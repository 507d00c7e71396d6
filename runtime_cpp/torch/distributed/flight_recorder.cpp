// torch's recorder, of which each library that fills it has one of its own.
#include "flight_recorder.h"

#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>

#include "releases.h"

#ifndef DIPU_TORCH_RECORDS_CALLS
#include <torch/csrc/distributed/c10d/FlightRecorderDetail.hpp>
#endif

namespace dipu::distributed {

// Whether a call is over. It outlives its entry, which points to it.
struct Progress {
    static constexpr int64_t kOver = -1;
    std::atomic<int64_t> call = kOver;  // the number of the call that is running
    bool query() const { return call == kOver; }
};

}  // namespace dipu::distributed

#ifndef DIPU_TORCH_RECORDS_CALLS
namespace c10d {

// Durations are taken from pairs of events; the recorder gets no event for the start of a call.
template <>
float getDurationFromEvent<dipu::distributed::Progress>(dipu::distributed::Progress&, dipu::distributed::Progress&) {
    TORCH_INTERNAL_ASSERT(false, "the flight recorder was given no start of a call");
}

}  // namespace c10d
#endif

namespace dipu::distributed {
namespace {

#ifdef DIPU_TORCH_RECORDS_CALLS

c10d::FlightRecorder<c10::Event>& recorder() { return *c10d::getFlightRecorder("dicl"); }

#else

using Recorder = c10d::FlightRecorder<Progress>;

Recorder& recorder() { return *Recorder::get(); }

// Twice as many as entries: an entry is gone before its progress is used again.
Progress& next_progress(int64_t number) {
    static auto* const all = new std::vector<Progress>(2 * recorder().max_entries_);
    return (*all)[static_cast<std::size_t>(number) % all->size()];
}

#endif

}  // namespace

bool records_calls() { return recorder().enabled_; }

GroupRecord::GroupRecord(std::vector<uint64_t> ranks) : ranks_(std::move(ranks)) {
    static std::atomic<std::size_t> groups = 0;
    id_ = groups++;
}

#ifdef DIPU_TORCH_RECORDS_CALLS

void RecordedCall::complete() const {}

RecordedCall GroupRecord::add(const c10d::Backend&, const Entry&) { return {}; }

std::string flight_record(bool stacks, bool only_active) {
    return c10d::dump_fr_trace(true, stacks, only_active, "dicl");
}

#else

void RecordedCall::complete() const {
    int64_t number = number_;
    if (progress_ != nullptr && progress_->call.compare_exchange_strong(number, Progress::kOver)) {
        recorder().retire_id(id_, false);
    }
}

RecordedCall GroupRecord::add(const c10d::Backend& group, const Entry& entry) {
    static std::atomic<int64_t> numbers = 0;
    if (!records_calls()) {
        return {};
    }
    const std::tuple<std::string, std::string> name{group.getGroupUid(), group.getGroupDesc()};
    if (calls_++ == 0) {  // only now torch has told the group's name
        recorder().record_pg_ranks(name, ranks_);
    }
    const int64_t number = numbers++;
    Progress& progress = next_progress(number);
    progress.call = number;
    // torch's tool knows the names of NCCL's calls, and no other library's that has streams.
    const auto id = recorder().record(id_, name, entry.collectives, entry.messages, calls_, "nccl:" + entry.name,
                                      entry.inputs, entry.outputs, nullptr, &progress, entry.timeout,
                                      std::make_shared<c10d::ProcessGroupStatus>(), entry.is_message);
    return id ? RecordedCall(&progress, number, *id) : RecordedCall();
}

std::string flight_record(bool stacks, bool only_active) {
    {
        // Nobody keeps the numbers that these would tell, which the entries tell as well.
        const std::lock_guard<std::mutex> lock(recorder().mutex_);
        recorder().all_pg_status_.clear();
    }
    return recorder().dump(std::nullopt, true, stacks, only_active);
}

#endif

std::shared_future<void> write_flight_record(int rank) {
    std::promise<void> written;
    std::shared_future<void> end = written.get_future().share();
    std::thread([rank, written = std::move(written)]() mutable {
        try {
            const bool stacks = c10d::getCvarBool(c10d::TORCH_INCLUDE_STACK_TRACE, true);
            const bool only_active = c10d::getCvarBool(c10d::TORCH_INCLUDE_ONLY_ACTIVE, false);
            c10d::DebugInfoWriter::getWriter(rank).write(flight_record(stacks, only_active));
        } catch (const std::exception& error) {
            TORCH_WARN("dicl: the flight record could not be written: ", error.what());
        }
        written.set_value();
    }).detach();
    return end;
}

}  // namespace dipu::distributed
