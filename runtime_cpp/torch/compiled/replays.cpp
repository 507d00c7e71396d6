// Recording a run of a program, and doing it again.
#include "replays.h"

#include <algorithm>
#include <utility>

#include "device/device_api.h"

namespace dipu::compiled {

Replays::~Replays() {
    if (stream_ == nullptr && records_.empty()) {
        return;
    }
    const DeviceScope scope(device_);
    const diopiDeviceApi_t& api = device_api();
    for (const Record& record : records_) {
        static_cast<void>(api.destroy_graph(record.graph));
    }
    if (stream_ != nullptr) {
        static_cast<void>(api.destroy_stream(stream_));
    }
}

bool Replays::are_served() {
    const diopiDeviceApi_t& api = device_api();
    return api.begin_capture != nullptr && api.end_capture != nullptr && api.launch_graph != nullptr &&
           api.destroy_graph != nullptr;
}

diopiError_t Replays::run(const Places& places, diopiContextHandle_t context, const Issue& issue) {
    const auto known =
        std::find_if(records_.begin(), records_.end(), [&](const Record& record) { return record.places == places; });
    const Record* record = known == records_.end() ? nullptr : &*known;
    if (record == nullptr && refusal_.empty() && met_before(places)) {
        record = recorded(places, issue);
    }
    if (record == nullptr) {
        return issue(context);
    }
    check_device(device_api().launch_graph(record->graph, context->stream),
                 "launch what was recorded of a compiled program");
    ++replayed_;
    return diopiSuccess;
}

bool Replays::met_before(const Places& places) {
    const auto found = std::find_if(met_.begin(), met_.end(), [&](const KeptPlaces& met) { return met == places; });
    if (found != met_.end()) {
        met_.erase(found);
        return true;
    }
    met_.emplace_front(places);
    if (met_.size() > kMostMet) {
        met_.pop_back();
    }
    return false;
}

const Replays::Record* Replays::recorded(const Places& places, const Issue& issue) {
    const diopiDeviceApi_t& api = device_api();
    if (records_.size() == kMostRecords) {
        refusal_ = "memory lies elsewhere in every run";
        return nullptr;
    }
    if (stream_ == nullptr) {
        check_device(api.create_stream(&stream_), "create a stream");
    }
    diopiContext context(stream_, device_, /*keeps=*/true);
    check_device(api.begin_capture(stream_), "record a stream");
    const diopiError_t issued = issue(&context);
    diopiGraphHandle_t graph = nullptr;
    const int32_t ended = api.end_capture(stream_, &graph);
    if (ended != 0 || issued != diopiSuccess) {
        refusal_ = ended != 0 ? "the device could not record a run (status " + std::to_string(ended) + ")"
                              : last_operator_error();
        if (refusal_.empty()) {
            refusal_ = "the vendor's library refused a call";
        }
        if (ended == 0) {
            static_cast<void>(api.destroy_graph(graph));
        }
        return nullptr;
    }
    records_.push_front({KeptPlaces(places), graph, std::move(context.tensors)});
    return &records_.front();
}

}  // namespace dipu::compiled
