// Which arguments stay where they are, and when recording ends.
#include "replays.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "device/device_api.h"

namespace dipu::compiled {

bool Replays::are_served() {
    const diopiDeviceApi_t& api = device_api();
    return api.begin_capture != nullptr && api.end_capture != nullptr && api.launch_graph != nullptr &&
           api.destroy_graph != nullptr;
}

Recording* Replays::find(const RunPlaces& run) {
    const auto found = std::find_if(recordings_.begin(), recordings_.end(), [&](const auto& recording) {
        return recording->serves(run) && recording->is_free();
    });
    return found == recordings_.end() ? nullptr : found->get();
}

bool Replays::is_new(const RunPlaces& run) {
    if (std::find(met_.begin(), met_.end(), run.numbers) != met_.end()) {
        return false;
    }
    met_.push_front(run.numbers);
    if (met_.size() > kMostMet) {
        met_.pop_back();
    }
    return true;
}

void Replays::notice_moves(const RunPlaces& run) {
    const bool crowded = recordings_.size() >= kMost / 2;
    const bool first = last_.empty();
    last_.resize(run.arguments.size());
    moved_.resize(run.arguments.size());
    for (std::size_t i = 0; i < run.arguments.size(); ++i) {
        const Place& place = run.arguments[i];
        const bool moves = std::exchange(last_[i], place.address) != place.address && !first;
        const bool stays =
            uses_[i] == ArgumentUse::kWritten || (!crowded && (place.lent || uses_[i] == ArgumentUse::kHeld));
        moved_[i] = moved_[i] || (moves && !stays);
    }
}

std::unique_ptr<Recording> Replays::begin(const RunPlaces& run) {
    notice_moves(run);
    if (is_new(run) || !refusal_.empty()) {
        return nullptr;
    }
    const auto alike = std::count_if(recordings_.begin(), recordings_.end(),
                                     [&](const auto& recording) { return recording->serves(run); });
    if (alike == kMostAlike) {
        return nullptr;
    }
    if (recordings_.size() == kMost) {
        refuse("memory that it writes, its sizes or its numbers are others in every run");
        return nullptr;
    }
    return std::make_unique<Recording>(device_, run, moved_);
}

Recording& Replays::add(std::unique_ptr<Recording> recording) {
    recordings_.push_front(std::move(recording));
    return *recordings_.front();
}

void Replays::refuse(std::string reason) {
    refusal_ = std::move(reason);
    TORCH_WARN("mode='reduce-overhead': a compiled program is not recorded", recordings_.empty() ? "" : " any more",
               ": ", refusal_);
}

}  // namespace dipu::compiled
